"""Finds the known key that was probably meant by an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Collection

MAX_SLIPS = 2
"""The most letters in which a mistyped key differs."""


def mistyped(key: str, keys: Collection[str]) -> str:
    """Returns the known key that differs in a letter or two; empty without one."""
    most = MAX_SLIPS if len(key) > 5 else 1 if len(key) > 2 else 0
    close = difflib.get_close_matches(key, keys, n=5, cutoff=0.6)
    best = min(((_slips(key, candidate), candidate) for candidate in close), default=(most + 1, ""))
    return best[1] if best[0] <= most else ""


def similar(key: str, keys: Collection[str]) -> str:
    """Returns the known key that continues this one, or else has most of its letters."""
    longer = min((candidate for candidate in keys if candidate.startswith(f"{key}.")), key=len, default="")
    return longer or next(iter(difflib.get_close_matches(key, keys, n=1, cutoff=0.85)), "")


def _slips(word: str, other: str) -> int:
    """Returns the number of omitted, added, wrong or swapped letters (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        now = [row]
        for column, other_letter in enumerate(other, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != other_letter))
            if row > 1 and column > 1 and letter == other[column - 2] and word[row - 2] == other_letter:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]
