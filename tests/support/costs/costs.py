"""Costs by test file, kept in a file by part of `make test`, and the table of them."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

MEASURED = Path("build/durations.json")
KEPT = Path("tests/durations.json")
DEAREST = 10


@dataclass(slots=True)
class Cost:
    """Seconds on the clock and of the processors: of the set-up (fixtures, their begin and their end) and of the tests.

    The times of several pytest workers are added up.
    """

    tests: int = 0
    setup_seconds: float = 0.0
    setup_processor: float = 0.0
    own_seconds: float = 0.0
    own_processor: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds on the clock."""
        return self.setup_seconds + self.own_seconds

    @property
    def processor(self) -> float:
        """Seconds of the processors."""
        return self.setup_processor + self.own_processor

    def add(self, other: Cost) -> None:
        """Adds the other's cost to this one."""
        self.tests += other.tests
        self.setup_seconds += other.setup_seconds
        self.setup_processor += other.setup_processor
        self.own_seconds += other.own_seconds
        self.own_processor += other.own_processor

    def row(self) -> list[float]:
        """The row of a file of costs."""
        return [
            self.tests,
            *(
                round(value, 3)
                for value in (self.setup_seconds, self.setup_processor, self.own_seconds, self.own_processor)
            ),
        ]


@dataclass(slots=True)
class Part:
    """One part of `make test`: seconds on the clock from its begin to its end, and the costs of its files."""

    seconds: float
    files: dict[str, Cost]

    def total(self) -> Cost:
        """The sum over all files."""
        sum_ = Cost()
        for cost in self.files.values():
            sum_.add(cost)
        return sum_


def load(file: Path) -> dict[str, Part]:
    """The parts in a file, by their names; empty without a file."""
    if not file.exists():
        return {}
    return {
        name: Part(
            part["seconds"], {test_file: Cost(int(row[0]), *row[1:]) for test_file, row in part["files"].items()}
        )
        for name, part in json.loads(file.read_text())["parts"].items()
    }


def save(file: Path, parts: Mapping[str, Part], **about: str) -> None:
    """Writes the parts, and facts about them, to a file: one line a test file."""
    lines = []
    for name, part in parts.items():
        rows = ",\n".join(f"   {json.dumps(test_file)}: {cost.row()}" for test_file, cost in sorted(part.files.items()))
        lines.append(f'  {json.dumps(name)}: {{"seconds": {round(part.seconds, 1)}, "files": {{\n{rows}\n  }}}}')
    head = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items())
    columns = '"tests, set-up s, set-up processor s, own s, own processor s"'
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'{{\n{head} "columns": {columns},\n "parts": {{\n' + ",\n".join(lines) + "\n }\n}\n")


def add(file: Path, name: str, part: Part) -> None:
    """Adds a part to a file that keeps the others. Parts that run side by side write the same file."""
    file.parent.mkdir(exist_ok=True)
    with file.parent.joinpath(f"{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        save(file, load(file) | {name: part})


def dearest(files: Mapping[str, Cost], most: int | None = DEAREST) -> list[str]:
    """A line for each of the files that take most of the processors, the dearest first; for all files with None."""
    ordered = sorted(files.items(), key=lambda item: -item[1].processor)[:most]
    return [line(name, cost) for name, cost in ordered]


def line(name: str, cost: Cost) -> str:
    """One row of the table."""
    return (
        f"{cost.processor:7.1f} processor s ({cost.setup_processor:6.1f} set-up)  "
        f"{cost.seconds:7.1f} s ({cost.setup_seconds:6.1f} set-up)  {cost.tests:4} tests  {name}"
    )


def longest_first(files: Iterable[str], parts: Mapping[str, Part]) -> list[str]:
    """The files in the order in which several pytest workers finish at about the same time.

    Those that take longest come first, those that were never measured before all others.
    """
    seconds: dict[str, float] = {}
    for part in parts.values():
        for name, cost in part.files.items():
            seconds[name] = max(seconds.get(name, 0.0), cost.seconds)
    return sorted(files, key=lambda name: -seconds.get(name, float("inf")))
