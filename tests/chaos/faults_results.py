"""The results of scenarios, kept in a file, so that a matrix may be run in several parts."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.chaos_run import Outcome

Row = dict[str, Any]


@dataclass
class Results:
    """`rows` are outcomes, one a path, fault and seed; `broken` are unfinished scenarios, with the reasons."""

    file: Path
    rows: list[Row] = field(default_factory=list)
    broken: list[Row] = field(default_factory=list)

    @classmethod
    def load(cls, file: Path) -> Results:
        """The results of earlier runs; empty without a file."""
        tree = json.loads(file.read_text()) if file.exists() else {"rows": [], "broken": []}
        return cls(file, tree["rows"], tree["broken"])

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Adds the outcomes of one scenario, in place of earlier ones."""
        for item in outcomes:
            self._forget(item.fault, item.seed, item.path)
        self.rows += [{**outcome.row(), "date": _today()} for outcome in outcomes]
        self._save()

    def fail(self, fault: str, seed: int, reason: str) -> None:
        """Records that a scenario did not run to its end."""
        self._forget(fault, seed)
        self.broken.append({"fault": fault, "seed": seed, "why": reason, "date": _today()})
        self._save()

    def has(self, fault: str, seed: int, paths: Sequence[str], records: int) -> bool:
        """Whether all these ran to the end, were clean and had at least as many records."""
        done = {
            row["path"]
            for row in self.rows
            if (row["fault"], row["seed"]) == (fault, seed) and row["clean"] and row["records"] >= records
        }
        return done >= set(paths)

    def _forget(self, fault: str, seed: int, path: str = "") -> None:
        """Removes the results of a scenario; without a path, those of all paths."""
        self.broken = [b for b in self.broken if (b["fault"], b["seed"]) != (fault, seed)]
        mine = [r for r in self.rows if (r["fault"], r["seed"]) == (fault, seed) and path in ("", r["path"])]
        self.rows = [r for r in self.rows if r not in mine]

    def _save(self) -> None:
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(json.dumps({"rows": self.rows, "broken": self.broken}, indent=1))


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
