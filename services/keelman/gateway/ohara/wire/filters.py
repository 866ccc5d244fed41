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
    return [document for document in objects if all(_holds(document, key, text) for key, text in conditions)]


def _holds(document: Mapping[str, Any], key: str, text: str) -> bool:
    if text.lower() == ABSENT:
        return key not in document
    return key in document and _matches(document[key], text)


def _matches(value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return text.lower() == ("true" if value else "false")
    if isinstance(value, str):
        return value == text
    pattern = _json(text)
    if is_number(value):
        return is_number(pattern) and bool(pattern == value)
    if isinstance(value, list):
        return isinstance(pattern, list) and _within(pattern, value)
    return isinstance(pattern, dict) and _within(pattern, value)


def _within(pattern: Any, value: Any) -> bool:
    """Tells whether a JSON value is part of another: lists as sets, objects field by field, other values if equal."""
    if isinstance(pattern, dict) and isinstance(value, dict):
        return all(key in value and _within(item, value[key]) for key, item in pattern.items())
    if isinstance(pattern, list) and isinstance(value, list):
        return all(any(_within(item, other) for other in value) for item in pattern)
    return isinstance(pattern, bool) == isinstance(value, bool) and bool(pattern == value)


def _json(text: str) -> Any:
    """Parses a JSON value; returns None for other texts, and for an infinite number."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree
