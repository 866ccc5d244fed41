"""Parses YAML of several documents, and JSON. Texts and numbers keep the form in which they were written."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from keelman.model.errors import InvalidArgument

MOST_BYTES = 16 << 20
MOST_LEVELS = 100
MOST_VALUES = 1_000_000
"""Limits of a text, and of the values of a YAML document with its aliases written out."""


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
    check_size(text)
    try:
        return json.loads(text, parse_int=whole, parse_float=real, object_pairs_hook=_once)
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None


def check_size(text: str) -> None:
    """Raises InvalidArgument for a text that is too large to be parsed."""
    if len(text) > MOST_BYTES:
        raise InvalidArgument(f"{len(text)} characters: a file of manifests may have {MOST_BYTES}; use several")


def _too_deep() -> InvalidArgument:
    return InvalidArgument(f"nested too deeply: a document may have {MOST_LEVELS} levels")


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

    check_size(text)
    if text.count("[") + text.count("{") > MOST_LEVELS:
        _check_levels(yaml, text)
    loader = _loader(yaml)(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            _check_values(node)
            value = loader.construct_document(node)
            if value is not None:
                yield node.start_mark.line + 1, value
    except RecursionError:
        raise _too_deep() from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark and error.context_mark and mark.index >= len(text.rstrip()):  # something never ends
            mark = error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidArgument(f"{place}not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise InvalidArgument(f"not YAML: {error}") from None
    finally:
        loader.dispose()


def _check_levels(yaml: Any, text: str) -> None:
    """Raises InvalidArgument for brackets that are nested too deeply, before a document is made of them."""
    levels = 0
    with contextlib.suppress(yaml.YAMLError):  # the parser names the place of an error
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            levels += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if levels > MOST_LEVELS:
                raise _too_deep()


def _check_values(document: Any) -> None:
    """Raises InvalidArgument for a document that is nested too deeply, or has too many values once its aliases are
    written out."""
    sizes: dict[int, int] = {}

    def size_of(node: Any, levels: int) -> int:
        if levels > MOST_LEVELS:  # so is a document that contains itself
            raise _too_deep()
        if isinstance(node.value, str):
            return 1
        if id(node) not in sizes:
            parts = (part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,)))
            sizes[id(node)] = 1 + sum(size_of(part, levels + 1) for part in parts)
        return sizes[id(node)]

    if (size := size_of(document, 1)) > MOST_VALUES:
        raise InvalidArgument(f"its aliases stand for {size} values: a document may have {MOST_VALUES}")


def _loader(yaml: Any) -> Any:
    import re  # noqa: PLC0415

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
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
