"""Advisories in the format of OSV, and which versions they affect.

A database is a folder of OSV's JSON files, of its `all.zip`s, or of both, in any depth; or one such zip. The kept list
(requirements/advisories.toml) has the few advisories that are checked without a database, in the same terms.
"""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version
from tools.supply.maven_versions import maven_order
from tools.supply.parts import MAVEN, PYPI, Part, normal_name

Package = tuple[str, str]
"""An ecosystem and a name."""
Event = tuple[str, str]
"""`introduced`, `fixed`, `last_affected` or `limit`, and the version."""


@dataclass(frozen=True, slots=True)
class Affected:
    """The affected versions of a package: `ranges` have OSV's events, `versions` are named one by one."""

    advisory: str
    aliases: tuple[str, ...]
    summary: str
    ranges: tuple[tuple[Event, ...], ...] = ()
    versions: frozenset[str] = frozenset()

    @property
    def ids(self) -> frozenset[str]:
        """All names of the advisory."""
        return frozenset({self.advisory, *self.aliases})

    def fixed_for(self, part: Part) -> str | None:
        """Returns the version that is not affected any more, empty if there is none; None if the part is not
        affected."""
        for events in self.ranges:
            fixed = _fixed(events, part)
            if fixed is not None:
                return fixed
        return "" if part.version in self.versions else None


Advisories = Mapping[Package, list[Affected]]


def read_database(place: Path) -> Advisories:
    """Reads an OSV database. Ends the program if the place has no advisory."""
    found: dict[Package, list[Affected]] = defaultdict(list)
    for text in _documents(place):
        document = json.loads(text)
        if isinstance(document, dict) and "affected" in document and not document.get("withdrawn"):
            for package, affected in _affected(document):
                found[package].append(affected)
    if not found:
        sys.exit(f"audit: OSV_DATABASE={place}: no advisory for {PYPI} or {MAVEN}; name a folder of OSV's JSON files")
    return found


def read_kept(file: Path) -> tuple[str, Advisories]:
    """Reads the kept list; returns the date on which it was made, too."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    found: dict[Package, list[Affected]] = defaultdict(list)
    for entry in document["advisory"]:
        ranges = tuple(tuple(_events(text)) for text in entry["affected"])
        ids = tuple(entry["ids"])
        for name in entry["packages"]:
            package = _package(entry["ecosystem"], name)
            found[package].append(Affected(ids[0], ids[1:], entry["summary"], ranges))
    return str(document["date"]), found


def findings(parts: Iterable[Part], advisories: Advisories) -> Iterator[tuple[Part, Affected, str]]:
    """Yields each part that an advisory affects, the advisory, and the version that mends it. An advisory that a
    database has under several names comes once."""
    for part in parts:
        seen: set[str] = set()
        for affected in advisories.get(_package(part.ecosystem, part.name), ()):
            fixed = affected.fixed_for(part)
            if fixed is not None and not seen & affected.ids:
                seen |= affected.ids
                yield part, affected, fixed


def _events(text: str) -> Iterator[Event]:
    """Yields the events of a range of the kept list: `FIRST to FIXED`, or `FIRST` alone where nothing mends it."""
    first, _, fixed = text.partition(" to ")
    yield "introduced", first.strip()
    if fixed:
        yield "fixed", fixed.strip()


def _fixed(events: Iterable[Event], part: Part) -> str | None:
    """Returns the version that ends the range in which the part's version is, empty if none does; None outside."""
    compared = [(kind, v, -1 if v == "0" else _order(part.ecosystem, v, part.version)) for kind, v in events]
    if not any(kind == "introduced" and order <= 0 for kind, _, order in compared):
        return None
    last = max((e for e in compared if e[0] == "introduced" and e[2] <= 0), key=_by_version(part.ecosystem))
    later = [e for e in compared if e[0] != "introduced" and _rank(part.ecosystem, e[1], last[1]) >= 0]
    if not later:
        return ""
    kind, version, order = min(later, key=_by_version(part.ecosystem))
    if order > 0:
        return version if kind == "fixed" else ""
    return "" if kind == "last_affected" and not order else None


def _by_version(ecosystem: str) -> Callable[[tuple[str, str, int]], Any]:
    return cmp_to_key(lambda left, right: _rank(ecosystem, left[1], right[1]))


def _rank(ecosystem: str, first: str, second: str) -> int:
    """Compares two versions of events, of which `0` is before all."""
    if "0" in {first, second}:
        return (first != "0") - (second != "0")
    return _order(ecosystem, first, second)


def _documents(place: Path) -> Iterator[bytes]:
    files = [place] if place.is_file() else sorted(place.rglob("*")) if place.is_dir() else []
    for file in files:
        if file.suffix == ".json":
            yield file.read_bytes()
        elif file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                for name in archive.namelist():
                    if name.endswith(".json"):
                        yield archive.read(name)


def _affected(document: Mapping[str, Any]) -> Iterator[tuple[Package, Affected]]:
    aliases = tuple(document.get("aliases", ()))
    for entry in document["affected"]:
        package = entry.get("package", {})
        if package.get("ecosystem") not in {PYPI, MAVEN}:
            continue
        ranges = [r for r in entry.get("ranges", ()) if r["type"] in {"ECOSYSTEM", "SEMVER"}]
        events = tuple(tuple((kind, str(v)) for event in r["events"] for kind, v in event.items()) for r in ranges)
        yield (
            _package(package["ecosystem"], package["name"]),
            Affected(
                document["id"], aliases, document.get("summary", ""), events,
                frozenset(entry.get("versions", ())),
            ),
        )  # fmt: skip


def _package(ecosystem: str, name: str) -> Package:
    return ecosystem, normal_name(name) if ecosystem == PYPI else name


def _order(ecosystem: str, first: str, second: str) -> int:
    if ecosystem == MAVEN:
        return maven_order(first, second)
    try:
        left, right = Version(first), Version(second)
    except InvalidVersion:
        return (first > second) - (first < second)
    return (left > right) - (left < right)
