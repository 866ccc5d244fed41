"""The whole matrix, path x accident x seed: `python tests/chaos/faults.py [--seeds 3] [--only PATTERN]`.

Prints as it goes; writes build/faults.json and the table in docs/faults.md.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import fnmatch
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from chaos_accidents import ACCIDENTS, may_mount
from chaos_paths import PATHS
from chaos_run import Outcome, scenario
from chaos_system import System
from confluent_kafka import KafkaException
from faults_table import page

ROOT = Path(__file__).parents[2]
RECORDS = 100_000
SECONDS = 15.0


async def run(arguments: argparse.Namespace) -> int:
    """Runs what was asked for; the number of outcomes that are not clean."""
    outcomes: list[Outcome] = []
    broken: list[str] = []
    wanted = [a for a in ACCIDENTS.values() if fnmatch.fnmatch(a.name, f"*{arguments.only}*")]
    if not may_mount():
        wanted = [a for a in wanted if a.before is None]
    paths = [p for p in PATHS if fnmatch.fnmatch(p, f"*{arguments.path}*")]
    begun = time.monotonic()
    plan = [(a, seed) for seed in range(1, arguments.seeds + 1) for a in wanted if set(a.paths) & set(paths)]
    while plan:
        with tempfile.TemporaryDirectory(prefix="keelman-faults-", dir=arguments.folder) as folder:
            async with System(Path(folder)) as system:
                while plan:
                    accident, seed = plan[0]
                    if time.monotonic() - begun > arguments.minutes * 60:
                        print(f"time is up; {len(plan)} scenarios were not run", flush=True)
                        plan = []
                        break
                    plan.pop(0)
                    print(f"{accident.name}, seed {seed} … ({len(plan)} left)", flush=True)
                    started = time.monotonic()
                    try:
                        found = await scenario(
                            system, paths, accident, seed, records=arguments.records, seconds=SECONDS
                        )
                    except (AssertionError, TimeoutError, KafkaException) as error:
                        print(f"  FAILED TO RUN: {type(error).__name__} {error}\n{system.logs()}", flush=True)
                        keep(Path(folder), f"{accident.name}-{seed}")
                        broken.append(f"{accident.name}, seed {seed}: {str(error).splitlines()[0]}")
                        write(outcomes, broken)
                        break
                    outcomes += found
                    write(outcomes, broken)
                    print(f"  {time.monotonic() - started:.0f} s; {found[0].notes}", flush=True)
                    for one in found:
                        took = "never" if one.seconds_to_recover is None else f"{one.seconds_to_recover:.1f} s"
                        print(f"  {one.path:12} {one.report}; recovered in {took}", flush=True)
                    if not all(o.clean for o in found):
                        keep(Path(folder), f"{accident.name}-{seed}")
                        print(system.logs(), flush=True)
                        break
    for line in broken:
        print(f"not run to its end: {line}", flush=True)
    return len(broken) + sum(not o.clean for o in outcomes)


def keep(folder: Path, name: str) -> None:
    """Keeps a system's logs and data for a closer look, in build/faults."""
    target = ROOT / "build" / "faults" / name.replace(" ", "-").lower()
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(shutil.Error):  # files that come and go while the system runs
        shutil.copytree(folder, target, symlinks=True, ignore=shutil.ignore_patterns("*.sock", "*.disk"))


def write(outcomes: list[Outcome], broken: list[str]) -> None:
    """The files, after each scenario anew: what was run is told even when the rest never is."""
    rows: list[dict[str, Any]] = [o.row() for o in outcomes]
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    (build / "faults.json").write_text(json.dumps(rows, indent=1))
    (ROOT / "docs" / "faults.md").write_text(page(rows, datetime.datetime.now(datetime.UTC).date(), broken))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="accidents whose name holds this (* and ? allowed)")
    parser.add_argument("--path", default="", help="paths whose name holds this")
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--minutes", type=float, default=180)
    parser.add_argument("--folder", default=None)
    sys.exit(min(1, asyncio.run(run(parser.parse_args()))))
