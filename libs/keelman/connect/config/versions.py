"""Versions of plugins and ranges of them, as in Connect's `connector.plugin.version`: 1.2, [1.0,2.0), latest.

Source of the syntax and of the messages: Maven's version ranges (org.apache.maven.artifact.versioning, 3.9), which
Connect uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_QUALIFIERS = {"alpha": -5, "a": -5, "beta": -4, "b": -4, "milestone": -3, "m": -3, "rc": -2, "cr": -2, "snapshot": -1}
_RELEASE = ("ga", "final", "release")

Ordered = tuple[tuple[int, int, str], ...]


class VersionRangeError(ValueError):
    """An invalid range; the message is Maven's."""


def ordered(version: str) -> Ordered:
    """Returns a comparable version: 1.0-rc1, 1.0, 1.0-acme, 1.0.1, 1.10. Zeros at the end mean nothing."""
    pieces: list[tuple[int, int, str]] = []
    for part in re.findall(r"\d+|[a-z]+", version.lower()):
        if part.isdecimal():
            pieces.append((3, int(part), ""))
        elif part in _QUALIFIERS:
            pieces = [*_without_noughts(pieces), (0, _QUALIFIERS[part], "")]
        elif part not in _RELEASE:
            pieces = [*_without_noughts(pieces), (2, 0, part)]
    return (*_without_noughts(pieces), (1, 0, ""))


def _without_noughts(parts: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    end = len(parts)
    while end and parts[end - 1] == (3, 0, ""):
        end -= 1
    return parts[:end]


@dataclass(frozen=True, slots=True)
class Restriction:
    """All versions between two bounds; None is no bound."""

    least: str | None
    with_least: bool
    most: str | None
    with_most: bool

    def __contains__(self, version: str) -> bool:
        position = ordered(version)
        if self.least is not None and not _above(position, ordered(self.least), equal=self.with_least):
            return False
        return self.most is None or _above(ordered(self.most), position, equal=self.with_most)

    def __str__(self) -> str:
        ends = "[" if self.with_least else "(", "]" if self.with_most else ")"
        return f"{ends[0]}{self.least or ''},{self.most or ''}{ends[1]}"


@dataclass(frozen=True, slots=True)
class VersionRange:
    """One range or several."""

    parts: tuple[Restriction, ...]

    def latest(self, versions: Iterable[str]) -> str | None:
        """Returns the highest of the versions within the range, None without one."""
        return max((v for v in versions if any(v in part for part in self.parts)), key=ordered, default=None)

    def __str__(self) -> str:
        return ",".join(map(str, self.parts))


def requirement(text: str | None) -> VersionRange | None:
    """Parses a user's requirement: None for any, which is the latest. A bare version means that one. Raises
    VersionRangeError."""
    if text is None or text == "latest":
        return None
    trimmed = text.strip()
    return VersionRange(tuple(_parts(trimmed)) or tuple(_parts(f"[{trimmed}]")))


def _parts(text: str) -> list[Restriction]:
    restrictions: list[Restriction] = []
    rest = text
    while rest.startswith(("[", "(")):
        ends = [place for place in (rest.find(")"), rest.find("]")) if place >= 0]
        if not ends:
            raise VersionRangeError(f"Unbounded range: {text}")
        part = _restriction(rest[: min(ends) + 1])
        before = restrictions[-1].most if restrictions else None
        if before is not None and (part.least is None or ordered(part.least) < ordered(before)):
            raise VersionRangeError(f"Ranges overlap: {text}")
        restrictions.append(part)
        rest = rest[min(ends) + 1 :].strip().removeprefix(",").strip()
    if rest and restrictions:
        raise VersionRangeError(f"Only fully-qualified sets allowed in multiple set scenario: {text}")
    return restrictions


def _restriction(text: str) -> Restriction:
    with_least, with_most = text.startswith("["), text.endswith("]")
    least, comma, most = (part.strip() for part in text[1:-1].partition(","))
    if not comma:
        if not (with_least and with_most):
            raise VersionRangeError(f"Single version must be surrounded by []: {text}")
        return Restriction(least, True, least, True)
    if least and most:
        low, high = ordered(least), ordered(most)
        if high < low or (high == low and not (with_least and with_most)):
            raise VersionRangeError(f"Range defies version ordering: {text}")
    return Restriction(least or None, with_least, most or None, with_most)


def _above(version: Ordered, other: Ordered, *, equal: bool) -> bool:
    return version > other or (equal and version == other)
