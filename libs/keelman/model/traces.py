"""Finds the most informative line of a failure's trace."""

from __future__ import annotations

_BARE = "Tolerance exceeded in error handler"
_BEHIND = "Caused by: "


def why_line(trace: str) -> str:
    """Returns the most informative line of a trace: its head, or the cause if that head names no record."""
    lines = trace.strip().split("\n")
    if len(lines) > 1 and lines[1].startswith(_BEHIND) and lines[0].endswith(_BARE):
        return lines[1].removeprefix(_BEHIND)
    return lines[0]
