"""Finds the line of a failure's trace that says most."""

from __future__ import annotations

_BARE = "Tolerance exceeded in error handler"
_BEHIND = "Caused by: "


def why_line(trace: str) -> str:
    """The line of a trace that says most: its head, or what is behind it where that head names no record."""
    lines = trace.strip().split("\n")
    if len(lines) > 1 and lines[1].startswith(_BEHIND) and lines[0].endswith(_BARE):
        return lines[1].removeprefix(_BEHIND)
    return lines[0]
