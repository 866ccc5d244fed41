"""The filters of list requests: each query parameter is a condition on a field of the answer, and all must hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from keelman.gateway.ohara.wire.json_types import is_number

ABSENT = "none"
Query = Iterable[tuple[str, str]]


def filtered(objects: Iterable[dict[str, Any]], query: Query) -> list[dict[str, Any]]:
    """Returns the objects that match a query."""
    conditions = [(key, text) for key, text in query if key and text]
    return [one for one in objects if all(_holds(one, key, text) for key, text in conditions)]


def _holds(one: Mapping[str, Any], key: str, text: str) -> bool:
    if text.lower() == ABSENT:
        return key not in one
    return key in one and _matches(one[key], text)


def _matches(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return text.lower() == ("true" if value else "false")
    if isinstance(value, str):
        return value == text
    wanted = _json(text)
    if is_number(value):
        return is_number(wanted) and bool(wanted == value)
    if isinstance(value, list):
        return isinstance(wanted, list) and _within(wanted, value)
    return isinstance(wanted, dict) and _within(wanted, value)


def _within(wanted: Any, value: Any) -> bool:
    """Tells whether a JSON value is part of another: lists as sets, objects field by field, other values if equal."""
    if isinstance(wanted, dict) and isinstance(value, dict):
        return all(key in value and _within(one, value[key]) for key, one in wanted.items())
    if isinstance(wanted, list) and isinstance(value, list):
        return all(any(_within(one, other) for other in value) for one in wanted)
    return isinstance(wanted, bool) == isinstance(value, bool) and bool(wanted == value)


def _json(text: str) -> Any:
    """Parses a JSON value; returns None for other texts, and for an infinite number."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(found, float) and not math.isfinite(found) else found
