"""The whole matrix, path x fault x seed: `python -m chaos.faults [--seeds 3] [--only PATTERN] [--resume]`.

Prints progress. After each scenario it writes build/faults.json and, from it, the table in docs/faults.md: the page
shows finished scenarios even if the rest never runs, and keeps the lines of scenarios that did not run again. A run of
everything starts the file anew; a partial run or `--resume` adds to it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import fnmatch
import shutil
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

from chaos.chaos_faults import FAULTS, Fault, may_mount
from chaos.chaos_paths import PATHS
from chaos.chaos_run import Outcome, scenario
from chaos.chaos_system import CLOCKS, OWN_DISK, System
from chaos.faults_results import Results
from chaos.faults_table import page
from support.clock import may_set

ROOT = Path(__file__).parents[2]
RECORDS = 100_000
SECONDS = 15.0
STARTS = 3


@dataclass
class Matrix:
    """The scenarios to run, and their results."""

    arguments: argparse.Namespace
    paths: list[str]
    plan: deque[tuple[Fault, int]]
    results: Results
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    bad: int = 0

    async def run(self) -> None:
        """Runs all, a new system after each problem and for each kind of system."""
        failed = 0
        while self.plan and failed < STARTS:
            shape = self.plan[0][0].shape
            with tempfile.TemporaryDirectory(prefix="keelman-faults-", dir=self.arguments.folder) as folder:
                try:
                    async with System(Path(folder), shape) as system:
                        failed = 0
                        while self.plan and self.plan[0][0].shape == shape and await self._one(system):
                            pass
                except AssertionError as error:
                    failed += 1
                    say(f"the system did not start or end: {error}")
        self.bad += len(self.plan)
        for fault, seed in self.plan:
            say(f"not run: {fault.name}, seed {seed}")

    async def _one(self, system: System) -> bool:
        """Runs the next scenario; False when the system must not be used again."""
        fault, seed = self.plan.popleft()
        self.done += 1
        total, started = self.done + len(self.plan), time.monotonic()
        say(f"[{self.done}/{total}, {clock(started - self.begun)}] {fault.name}, seed {seed} …")
        outcomes: list[Outcome] = []
        try:
            async with asyncio.timeout(self.arguments.limit * 60):
                outcomes = await scenario(
                    system, self.paths, fault, seed, records=self.arguments.records, seconds=SECONDS
                )
            self.results.add(outcomes)
        except Exception as error:  # any error: the other scenarios must still run
            line = str(error).splitlines()[0] if str(error) else f"longer than {self.arguments.limit:.0f} minutes"
            self.results.fail(fault.name, seed, f"{type(error).__name__}: {line}")
            say(f"  NOT RUN TO ITS END: {type(error).__name__}: {str(error) or line}")
        self._write()
        good = bool(outcomes) and all(o.clean for o in outcomes)
        for item in outcomes:
            stood = f"stood still for {item.standstill_seconds:.1f} s"
            stood += "" if item.latency_seconds is None else f", then {item.latency_seconds:.2f} s"
            say(f"  {'ok ' if item.clean else 'BAD'} {item.path:12} {item.report}; {stood}")
        each = (time.monotonic() - self.begun) / self.done
        notes = "; ".join(outcomes[0].notes) if outcomes else ""
        say(f"  {time.monotonic() - started:.0f} s; about {clock(each * len(self.plan))} to go; {notes}".rstrip("; "))
        if not good:
            self.bad += 1
            say(system.logs())
            keep(system.folder, f"{fault.name}-{seed}")
        return good and not fault.spoils

    def _write(self) -> None:
        if not self.arguments.dry:
            write_page(self.results)


def planned(arguments: argparse.Namespace) -> Matrix:
    """The matrix for the arguments, by kind of system, then by seed, so that the first seed covers all early."""
    names = arguments.only.split(",")
    expected = [a for a in FAULTS.values() if any(fnmatch.fnmatch(a.name, f"*{n.strip()}*") for n in names)]
    if not may_mount():
        say("a full disk needs a file system of its own, which only root makes: not run")
        expected = [a for a in expected if a.before is None and a.broker != OWN_DISK]
    if not may_set():
        say("clocks are set by a library that is compiled here, and there is no C compiler: not run")
        expected = [a for a in expected if a.broker != CLOCKS]
    paths = [p for p in PATHS if fnmatch.fnmatch(p, f"*{arguments.path}*")]
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    kinds = dict.fromkeys(a.shape for a in sorted(expected, key=lambda a: a.cluster))
    plan = [(a, seed) for kind in kinds for seed in seeds for a in expected if a.shape == kind]
    plan = [(a, seed) for a, seed in plan if set(a.paths) & set(paths)]
    file = ROOT / "build" / ("faults-dry.json" if arguments.dry else "faults.json")
    part = arguments.only or arguments.path or arguments.first > 1
    results = Results.load(file) if arguments.resume or part else Results(file)
    if arguments.resume:
        mine = [(a, seed, [p for p in a.paths if p in paths]) for a, seed in plan]
        plan = [(a, seed) for a, seed, on in mine if not results.has(a.name, seed, on, arguments.records)]
    return Matrix(arguments, paths, deque(plan), results)


def write_page(results: Results) -> None:
    """Writes docs/faults.md from the known results; results of other runs stay in it."""
    file = ROOT / "docs" / "faults.md"
    file.write_text(page(results.rows, results.broken, file.read_text() if file.exists() else ""))


def keep(folder: Path, name: str) -> None:
    """Keeps a system's logs and data for a closer look, in build/faults."""
    target = ROOT / "build" / "faults" / name.replace(" ", "-").lower()
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(shutil.Error):  # files that come and go while the system runs
        shutil.copytree(folder, target, symlinks=True, ignore=shutil.ignore_patterns("*.sock", "*.disk"))
    say(f"  kept in {target.relative_to(ROOT)}")


def clock(seconds: float) -> str:
    """h:mm:ss."""
    return str(datetime.timedelta(seconds=int(seconds)))


def say(text: str) -> None:
    """Prints a line at once, also into a file."""
    print(text, flush=True)


def main() -> int:
    """Returns 0 if every requested scenario ran and was clean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--only", default="", help="faults whose name holds this, or one of these: x,y")
    parser.add_argument("--path", default="", help="paths whose name holds this")
    parser.add_argument("--records", type=int, default=RECORDS, help="records a path")
    parser.add_argument("--limit", type=float, default=10, help="most minutes a scenario may take")
    parser.add_argument("--resume", action="store_true", help="leave out what build/faults.json says was clean")
    parser.add_argument("--table", action="store_true", help="only write docs/faults.md from build/faults.json")
    parser.add_argument("--dry", action="store_true", help="try out: leave docs/faults.md and build/faults.json alone")
    parser.add_argument("--folder", default=None, help="where the systems keep their data")
    arguments = parser.parse_args()
    if arguments.table:
        write_page(Results.load(ROOT / "build" / "faults.json"))
        return 0
    matrix = planned(arguments)
    asyncio.run(matrix.run())
    say(f"{matrix.done} scenarios in {clock(time.monotonic() - matrix.begun)}, {matrix.bad} not clean or not run")
    return min(1, matrix.bad)


if __name__ == "__main__":
    sys.exit(main())
