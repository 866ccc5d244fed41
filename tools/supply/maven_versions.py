"""The order of Maven versions, as Maven's own ComparableVersion defines it."""

from __future__ import annotations

import re
from itertools import zip_longest

_QUALIFIERS = ("alpha", "beta", "milestone", "rc", "snapshot", "", "sp")
_ALIASES = {"cr": "rc", "ga": "", "final": "", "release": ""}
_SHORT = {"a": "alpha", "b": "beta", "m": "milestone"}
"""Legal before a digit only: `1.0-a1` is an alpha, `1.0-a` is a qualifier of its own."""
_TOKEN = re.compile(r"([.-]?)(\d+|[^\d.-]+)")

Item = tuple[bool, int, str]
"""Whether it is a number, its rank, and the text of an unknown qualifier."""


def maven_key(version: str) -> list[Item]:
    """Returns the items of a version; compare two versions with `maven_order`."""
    tokens = _TOKEN.findall(version.lower())
    items = [_item(text, tokens[index + 1 : index + 2]) for index, (_, text) in enumerate(tokens)]
    starts = [index for index, (separator, _) in enumerate(tokens) if separator == "-" or not index]
    kept: list[Item] = []
    for begin, end in zip_longest(starts, starts[1:], fillvalue=len(items)):
        part = items[begin:end]
        while part and _is_null(part[-1]):
            part.pop()
        kept += part
    return kept


def maven_order(first: str, second: str) -> int:
    """Returns a number below, equal to or above zero, as the first version is older, equal or newer."""
    for left, right in zip_longest(maven_key(first), maven_key(second)):
        left_rank, right_rank = _ranked(left, right), _ranked(right, left)
        if left_rank != right_rank:
            return -1 if left_rank < right_rank else 1
    return 0


def _item(text: str, following: list[tuple[str, str]]) -> Item:
    if text.isdigit():
        return (True, int(text), "")
    if text in _SHORT and following and not following[0][0] and following[0][1].isdigit():
        text = _SHORT[text]
    text = _ALIASES.get(text, text)
    return (False, _QUALIFIERS.index(text), "") if text in _QUALIFIERS else (False, len(_QUALIFIERS), text)


def _is_null(item: Item) -> bool:
    return item in {(True, 0, ""), (False, _QUALIFIERS.index(""), "")}


def _ranked(item: Item | None, other: Item | None) -> Item:
    """Returns an item so that it compares with the other one: a missing item is a zero or the empty qualifier."""
    if item is not None:
        return item
    is_number = other is not None and other[0]
    return (True, 0, "") if is_number else (False, _QUALIFIERS.index(""), "")
