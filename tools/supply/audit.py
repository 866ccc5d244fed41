"""Lists the open advisories for everything that is installed, fetched, or used to build: `make audit`.

Against the OSV database that OSV_DATABASE names, else against the kept list. The exit code is 1 when an advisory is
open and requirements/advisory_notes.toml has no reason why it cannot be reached.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tools.supply.advisories import Advisories, Affected, findings, read_database, read_kept
from tools.supply.parts import REQUIREMENTS, Part, audited, unlooked_sets

KEPT = REQUIREMENTS / "advisories.toml"
NOTES = REQUIREMENTS / "advisory_notes.toml"


@dataclass(frozen=True, slots=True)
class Note:
    """Why advisories cannot be reached in a part. `package` and `origin` are patterns; the version is exact, so that a
    part of another version is judged again."""

    package: str
    version: str
    origin: str
    advisories: frozenset[str]
    reason: str

    def covers(self, part: Part, affected: Affected) -> bool:
        """Tells whether the note is about an advisory of a part."""
        return (
            fnmatchcase(part.name, self.package)
            and part.version == self.version
            and fnmatchcase(part.origin, self.origin)
            and bool(self.advisories & affected.ids)
        )


@dataclass(frozen=True, slots=True)
class Row:
    """An advisory that affects a part; `note` is empty where it is open."""

    part: Part
    affected: Affected
    fixed: str
    note: Note | None

    def cells(self) -> tuple[str, ...]:
        """Returns the row's text, a cell a column."""
        where = f"{self.part.origin}, in {self.part.inside}" if self.part.inside else self.part.origin
        names = [i for i in self.affected.aliases if i.startswith("CVE-")] or [self.affected.advisory]
        reason = self.note.reason if self.note else f"OPEN: {self.affected.summary}"
        return self.part.name, self.part.version, where, names[0], self.fixed or "none", reason


def read_notes(file: Path) -> list[Note]:
    """Reads the notes."""
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["note"]
    return [
        Note(e["package"], e["version"], e["in"], frozenset(e["advisories"]), " ".join(e["reason"].split()))
        for e in entries
    ]


def judged(parts: Iterable[Part], advisories: Advisories, notes: Sequence[Note]) -> list[Row]:
    """Returns a row for each advisory that affects a part."""
    return [
        Row(part, affected, fixed, next((note for note in notes if note.covers(part, affected)), None))
        for part, affected, fixed in findings(parts, advisories)
    ]


def table(rows: Iterable[Row]) -> str:
    """Returns the rows as text, those that are open first."""
    head = ("package", "version", "where", "advisory", "fixed in", "note")
    lines = [head, *(row.cells() for row in sorted(rows, key=lambda row: (row.note is not None, row.cells())))]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head) - 1)]
    return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[-1]]) for line in lines)


def main(environment: Mapping[str, str]) -> int:
    """Prints the table and what was compared; returns the exit code."""
    if place := environment.get("OSV_DATABASE", ""):
        source, advisories = f"the OSV database {place}", read_database(Path(place))
    else:
        date, advisories = read_kept(KEPT)
        source = f"the kept list of {date} (OSV_DATABASE=folder names a whole database)"
    parts, notes = audited(), read_notes(NOTES)
    rows = judged(parts, advisories, notes)
    opened = [row for row in rows if row.note is None]
    if rows:
        print(table(rows))
    for note in notes:
        if not any(row.note is note for row in rows):
            print(f"audit: a note covers nothing: {note.package} {note.version}, {', '.join(sorted(note.advisories))}")
    for name in unlooked_sets():
        print(f"audit: the jars of {name} were not fetched: libraries inside them are not compared; run make setup")
    print(f"audit: {len(parts)} parts, {len(rows)} advisories, {len(opened)} open; compared with {source}")
    return 1 if opened else 0


if __name__ == "__main__":
    sys.exit(main(os.environ))
