"""How records are written: a step, a case or an answer a line, so that a difference shows what has changed."""

from __future__ import annotations

import json
from typing import Any


def one_a_line(value: Any) -> str:
    """JSON with each member of a list on a line of its own, and each key of what has such lists in it."""
    return "\n".join(_lines(value)) + "\n"


def _lines(value: Any) -> list[str]:
    if isinstance(value, list) and value:
        return ["[", *_joined([[_text(one)] for one in value]), "]"]
    if isinstance(value, dict) and any(map(_has_steps, value.values())):
        parts = []
        for key, one in value.items():
            first, *rest = _lines(one)
            parts.append([f"{json.dumps(key)}: {first}", *rest])
        return ["{", *_joined(parts), "}"]
    return [_text(value)]


def _has_steps(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_steps, value.values()))
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)


def _joined(parts: list[list[str]]) -> list[str]:
    """All lines, with a comma behind each part but the last."""
    found = [line for *before, last in parts for line in (*before, f"{last},")]
    return [*found[:-1], found[-1].removesuffix(",")] if found else found


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
