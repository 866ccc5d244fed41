"""Shortens the columns of a table that is wider than its terminal: texts first, then names. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from keelman.cli.output.columns import OutputColumn

GAP = 2
"""Blanks between two columns."""
MIN_TEXT, MIN_NAME = 8, 10
"""The shortest widths of texts and names; no column gets shorter than its title."""


def fitted_widths(columns: Sequence[OutputColumn], natural: Sequence[int], room: int) -> list[int]:
    """Returns the widths of columns in `room` from their natural widths: the widest column is shortened first. The sum
    stays too large if the columns cannot be shortened enough."""
    widths = list(natural)
    over = sum(widths) + GAP * (len(widths) - 1) - room
    for kind, least in (("text", MIN_TEXT), ("name", MIN_NAME)):
        floors = {n: max(least, len(column.title)) for n, column in enumerate(columns) if getattr(column, kind)}
        while over > 0 and (longer := [n for n, floor in floors.items() if widths[n] > floor]):
            widths[max(longer, key=widths.__getitem__)] -= 1
            over -= 1
    return widths


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows of plain words as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)
