"""Parses JSON strictly, and names its types as in Ohara's messages."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from keelman.gateway.ohara.wire.errors import bad_json

MAX_DEPTH = 20
"""The levels of objects and lists in a request: a stored document has three levels on our wire for each of them."""
MAX_DIGITS = 1000


def parsed(raw: bytes) -> Any:
    """Parses a body as JSON; of a repeated key the last value counts. Raises OharaError for a body that is no JSON in
    UTF-8 or is too deep, and for numbers that no double can hold."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise bad_json(f"the request is not UTF-8 at byte {error.start}") from None
    if not text.strip(" \t\r\n"):
        raise bad_json("Unexpected end-of-input at input index 0 (line 1, position 1), expected JSON Value")
    try:
        value = _DECODER.decode(text.strip(" \t\r\n"))
    except json.JSONDecodeError as error:
        raise bad_json(f"{error.msg} at line {error.lineno}, position {error.colno}") from None
    except ValueError as error:
        raise bad_json(str(error)) from None
    except RecursionError:
        raise bad_json(f"the request is nested deeper than {MAX_DEPTH} levels") from None
    _check(value, 0)
    return value


def type_name(value: Any) -> str:
    """Returns the name of a JSON value's type."""
    if value is None:
        return "JsNull"
    if isinstance(value, bool):
        return "JsBoolean"
    if isinstance(value, str):
        return "JsString"
    if isinstance(value, (int, float)):
        return "JsNumber"
    return "JsArray" if isinstance(value, list) else "JsObject"


def is_number(value: Any) -> bool:
    """Tells whether a JSON value is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def without_nulls(value: Any) -> Any:
    """Returns a JSON value without the nulls in its objects and lists."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def empty_strings(value: Any, key: str = "") -> Iterator[str]:
    """Yields the keys of empty strings in a JSON value; for a string in a list the key of the list."""
    if value == "":
        yield key
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from empty_strings(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from empty_strings(item, key)


def _check(value: Any, depth: int) -> None:
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value)
    elif isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise bad_json(f"the request is nested deeper than {MAX_DEPTH} levels")
        for name in value if isinstance(value, dict) else ():
            if not name:
                raise bad_json("a key of an object is empty")
            _check_text(name)
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, depth + 1)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"U+{ord(text[error.start]):04X}"
        raise bad_json(f"the request has half of a surrogate pair in it, {half}, which is no character") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS or not math.isfinite(float(text)):
        raise ValueError(f"the number {text[:40]}... is too large")
    return int(text)


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_no_constant)
