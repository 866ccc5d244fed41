"""Sets of characters as ranges of code points, and the named sets of Java's regular expressions."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Sorted and disjoint, each with both ends included."""

LAST = sys.maxunicode
NOTHING: Ranges = ()


def of(*parts: int | tuple[int, int]) -> Ranges:
    """Returns a set of code points and ranges of them."""
    return _joined((p, p) if isinstance(p, int) else p for p in parts)


def chars(text: str) -> Ranges:
    """Returns the set of a text's characters."""
    return of(*map(ord, text))


def union(*sets: Ranges) -> Ranges:
    """Returns the union of the sets."""
    return _joined(span for ranges in sets for span in ranges)


def complement(ranges: Ranges) -> Ranges:
    """Returns the complement of the set."""
    return tuple(_gaps(ranges))


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """Returns the intersection of the two sets."""
    return complement(union(complement(left), complement(right)))


def any_case(ranges: Ranges, *, unicode: bool) -> Ranges:
    """Adds the other case of each letter: of ASCII's letters only, or of all."""
    if unicode:
        groups = (_same_letter().get(_folded(code), ()) for first, last in ranges for code in range(first, last + 1))
        return union(ranges, of(*(code for group in groups for code in group)))
    letters = intersection(ranges, union(UPPER, LOWER))
    return union(ranges, of(*((first ^ 32, last ^ 32) for first, last in letters)))


def _folded(code: int) -> int:
    """Returns one code for all cases of a letter, as Java compares them: the lower case of its upper case."""
    upper = chr(code).upper()
    lower = upper.lower() if len(upper) == 1 else chr(code).lower()
    return ord(lower) if len(lower) == 1 else code


@lru_cache(maxsize=1)
def _same_letter() -> dict[int, tuple[int, ...]]:
    letters: dict[int, tuple[int, ...]] = {}
    for code in range(LAST + 1):
        folded = _folded(code)
        if folded != code:
            letters[folded] = (*letters.get(folded, (folded,)), code)
    return letters


def written(ranges: Ranges) -> str:
    """Returns the set in the syntax of Python's `re`."""
    if not ranges:
        return "(?!)"
    if ranges == ((0, LAST),):
        return r"[\s\S]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0])
    return "[" + "".join(_char(a) if a == b else f"{_char(a)}-{_char(b)}" for a, b in ranges) + "]"


def _char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in "_ /:,;") else f"\\U{code:08x}"


def _joined(parts: Iterable[tuple[int, int]]) -> Ranges:
    spans: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if spans and first <= spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return tuple(spans)


def _gaps(ranges: Ranges) -> Iterator[tuple[int, int]]:
    at = 0
    for first, last in ranges:
        if first > at:
            yield at, first - 1
        at = last + 1
    if at <= LAST:
        yield at, LAST


def _where(test: Callable[[str], bool]) -> Ranges:
    return of(*(code for code in range(LAST + 1) if test(chr(code))))


DIGIT = of((48, 57))
UPPER, LOWER = of((65, 90)), of((97, 122))
ALPHA = union(UPPER, LOWER)
WORD = union(ALPHA, DIGIT, chars("_"))
SPACE = chars(" \t\n\v\f\r")
HORIZONTAL = union(chars(" \t\xa0\u1680\u180e\u202f\u205f\u3000"), of((0x2000, 0x200A)))
VERTICAL = chars("\n\v\f\r\x85\u2028\u2029")
LINE_ENDS = chars("\n\r\x85\u2028\u2029")
PUNCT = of((33, 47), (58, 64), (91, 96), (123, 126))
_FIXED = {
    "Lower": LOWER,
    "Upper": UPPER,
    "ASCII": of((0, 127)),
    "Alpha": ALPHA,
    "Digit": DIGIT,
    "Alnum": union(ALPHA, DIGIT),
    "Punct": PUNCT,
    "Graph": of((33, 126)),
    "Print": of((32, 126)),
    "Blank": chars(" \t"),
    "Cntrl": of((0, 31), 127),
    "XDigit": union(DIGIT, of((65, 70), (97, 102))),
    "Space": SPACE,
    "all": ((0, LAST),),
    "ALL": ((0, LAST),),
    "L1": of((0, 255)),
    "IsWhite_Space": complement(union(complement(union(HORIZONTAL, VERTICAL)), chars("\u180e"))),
}
_NAMES = {
    "LC": ("Lu", "Ll", "Lt"),
    "LD": ("L", "Nd"),
    "IsDigit": ("Nd",),
    "IsLetter": ("L",),
    "javaDigit": ("Nd",),
    "javaLetter": ("L",),
    "javaLetterOrDigit": ("L", "Nd"),
}
_CASED = {
    "IsUppercase": str.isupper,
    "IsLowercase": str.islower,
    "javaUpperCase": str.isupper,
    "javaLowerCase": str.islower,
}


@lru_cache(maxsize=64)
def named(name: str, *, any_case: bool = False) -> Ranges | None:
    """Returns the set of `\\p{name}`, regardless of case if `any_case`; None for a name that is not supported here,
    which Java may know."""
    if name in ("Lower", "Upper") and any_case:
        return ALPHA
    if name in _FIXED:
        return _FIXED[name]
    if name in _CASED:
        return _where(
            lambda char: char.isupper() or char.islower() or char.istitle() if any_case else _CASED[name](char)
        )
    return _category(name, any_case=any_case)


def _category(name: str, *, any_case: bool) -> Ranges | None:
    key, equals, value = name.partition("=")
    if equals and key.lower() in ("gc", "general_category"):
        name = value
    elif name.startswith("Is") and name not in _NAMES:
        name = name[2:]
    if any_case and name in ("Lu", "Ll", "Lt"):
        name = "LC"
    sets = [_categories().get(category) for category in _NAMES.get(name, (name,))]
    return None if None in sets else union(*(char_set for char_set in sets if char_set is not None))


@lru_cache(maxsize=1)
def _categories() -> dict[str, Ranges]:
    """Returns each general category and each major class, in one pass over all characters."""
    runs: dict[str, list[tuple[int, int]]] = {}
    first, kind = 0, unicodedata.category(chr(0))
    for code in range(1, LAST + 2):
        now = unicodedata.category(chr(code)) if code <= LAST else ""
        if now != kind:
            for name in (kind, kind[0]):
                runs.setdefault(name, []).append((first, code - 1))
            first, kind = code, now
    return {name: of(*parts) for name, parts in runs.items()}
