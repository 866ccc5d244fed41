"""Parses YAML of several documents, and JSON. Texts and numbers keep the form in which they were written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from keelman.model.errors import InvalidArgument


class WholeNumber(int):
    """A whole number, with its text as written."""

    text: str


class Real(float):
    """A number, with its text as written."""

    text: str


def whole(text: str) -> WholeNumber:
    """Parses a whole number."""
    number = WholeNumber(text)
    number.text = text
    return number


def real(text: str) -> Real:
    """Parses a number with a point or an exponent."""
    number = Real(text)
    number.text = text
    return number


def json_document(text: str) -> Any:
    """Returns the value of a JSON text. Raises InvalidArgument with the place of the error."""
    try:
        return json.loads(text, parse_int=whole, parse_float=real, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    once: dict[str, Any] = {}
    for key, value in pairs:
        if key in once:
            raise InvalidArgument(f"{key}: twice in one object")
        once[key] = value
    return once


def yaml_documents(text: str) -> Iterator[tuple[int, Any]]:
    """Yields the non-empty documents of a YAML text, each with its first line. Raises InvalidArgument with the place of
    the error.

    Numbers are decimal, booleans true and false, and there are no dates: `1:30`, `010`, `off`, `2026-01-01` are texts.
    """
    import yaml  # noqa: PLC0415

    loader = _loader(yaml)(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            if value is not None:
                yield node.start_mark.line + 1, value
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidArgument(f"{place}not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise InvalidArgument(f"not YAML: {error}") from None
    finally:
        loader.dispose()


def _loader(yaml: Any) -> Any:
    import re  # noqa: PLC0415

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (as the class that it is made from has it)

    def mapping(loader: Any, node: Any, deep: bool = False) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise yaml.constructor.ConstructorError(None, None, "a key must be a text", key_node.start_mark)
            if key in mapping:
                raise yaml.constructor.ConstructorError(None, None, f"{key}: twice in one mapping", key_node.start_mark)
            mapping[key] = loader.construct_object(value_node, deep=True)
        return mapping

    for tag, pattern, first in (
        ("null", r"~|null|", ["~", "n", ""]),
        ("bool", r"true|false", ["t", "f"]),
        ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
        (
            "float",
            r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)",
            list("-+.0123456789"),
        ),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"^(?:{pattern})$"), first)
    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: whole(node.value))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: real(node.value))
    return Loader
