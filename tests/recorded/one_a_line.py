"""The form of records: a step, a case or an answer per line, so that a diff shows the changed ones."""

from __future__ import annotations

import json
from typing import Any


def one_a_line(value: Any, *, ascii_only: bool = False) -> str:
    """JSON with each item of a list on its own line, and each key whose value contains such lists.

    With `ascii_only` all other characters are escaped: lone surrogates cannot be written in any other way.
    """
    return "\n".join(_lines(value, ascii_only)) + "\n"


def _lines(value: Any, ascii_only: bool) -> list[str]:
    if isinstance(value, list) and value:
        return ["[", *_joined([[_text(item, ascii_only)] for item in value]), "]"]
    if isinstance(value, dict) and any(map(_has_steps, value.values())):
        parts = []
        for key, item in value.items():
            first, *rest = _lines(item, ascii_only)
            parts.append([f"{json.dumps(key)}: {first}", *rest])
        return ["{", *_joined(parts), "}"]
    return [_text(value, ascii_only)]


def _has_steps(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_steps, value.values()))
    return isinstance(value, list) and any(isinstance(item, dict | list) for item in value)


def _joined(parts: list[list[str]]) -> list[str]:
    """All lines, with a comma after each part but the last."""
    lines = [line for *before, last in parts for line in (*before, f"{last},")]
    return [*lines[:-1], lines[-1].removesuffix(",")] if lines else lines


def _text(value: Any, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only)
