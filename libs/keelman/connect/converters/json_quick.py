"""JSON of data without a schema, in one go where nothing needs care."""

from __future__ import annotations

import re
from functools import lru_cache
from types import NoneType
from typing import Any

import orjson

from keelman.connect.java.numbers import Int8, Int16, Int32
from keelman.connect.java.text import hash_order


@lru_cache(maxsize=1000)
def in_order(keys: tuple[str, ...]) -> list[str]:
    """Maps are HashMaps in Connect, and are written in their order. Raises CareError for other keys than strings."""
    if any(not isinstance(key, str) for key in keys):
        raise CareError
    return hash_order(keys)


def quick_json(value: Any) -> bytes | None:
    """The JSON of data without a schema where it needs no care: None for numbers that Java writes otherwise, for what
    is neither text nor number, and for characters that are escaped."""
    try:
        written = orjson.dumps(_plain_tree(value))
    except (CareError, TypeError, orjson.JSONEncodeError):
        return None
    return None if _ESCAPED.search(written) else written


class CareError(Exception):
    """Some value must be written with care."""


def _plain_tree(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        return {key: _plain_tree(value[key]) for key in in_order(tuple(value))}
    if kind is list:
        return [_plain_tree(one) for one in value]
    if kind is float and (1e-3 <= value < 1e7 or -1e7 < value <= -1e-3):
        return value
    raise CareError


_AS_THEY_ARE = {str, int, bool, NoneType, Int8, Int16, Int32}
_ESCAPED = re.compile(rb"\\u|[\xf0-\xff]")
