"""Runs the benchmarks: `python -m bench [name ...]` with `tests` on the path; `make bench [BENCH=name]`."""

from __future__ import annotations

import argparse
import asyncio
import platform
import shutil
import tempfile
import time
import traceback
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
from rich.console import Console

from bench.copying import java_plugins
from bench.measuring.figures import Figure, save, show
from bench.rows import THREE, Bench

NAMES = (
    *("mirror-eos", "file-source", "file-sink", "trickle", "trickle-floor", "active-300", "wake", "start"),
    *("worker-start", "create", "idle-10k", "list-10k", "failover", "takeover", "assign"),
    *("cluster-start", "state-100", "state-300", "state-1000", "plane-300", "plane-1000"),
    *("ohara-calls", "ohara-start", "ohara-clients", "dedicated", "scale-out", "autoscale-20", "managed", "strangers"),
    *("json-smt", "avro", "couchbase", "slow-targets", "data-sets", f"mirror-eos{THREE}", f"file-source{THREE}"),
    *java_plugins.ROWS,
)
RESULTS = Path("build/bench.json")


async def main() -> int:
    """Runs the named rows and prints the table; the exit code tells only whether all ran.

    Each row is in build/bench.json as soon as it is measured. A row that fails is noted there, and the next ones are
    measured all the same.
    """
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], help="rows to measure; all when none is named")
    parser.add_argument("--records", type=int, default=5_000_000, help="records of the throughput rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=1, help="rounds before those that count")
    parser.add_argument("--trickle", type=int, default=400, help="records of one round of the trickle")
    parser.add_argument("--connectors", type=int, default=300)
    parser.add_argument("--samples", type=int, default=60, help="samples of wake, start and create")
    parser.add_argument("--managed", type=int, default=200, help="connectors of the managed API")
    parser.add_argument("--parked", type=int, default=10_000, help="connectors of idle-10k")
    parser.add_argument("--patience", type=float, default=7200, help="seconds that idle-10k may take to be idle")
    options = parser.parse_args()
    console = Console(width=200)
    folder = Path(tempfile.mkdtemp(prefix="keelman-bench-"))
    begun, figures, failed = time.monotonic(), list[Figure](), list[str]()
    try:
        async with AsyncExitStack() as stack:
            bench = Bench(stack, console, folder, options)
            for name in options.names or NAMES:
                result, failure = await row(bench, name)
                save(name, result, failure, RESULTS, machine())
                figures += result
                failed += [name] if failure else []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if figures:
            show(figures, console)
    bench.say(f"took {(time.monotonic() - begun) / 60:.1f} minutes; figures in {RESULTS}")
    if failed:
        bench.say(f"NOT measured: {', '.join(failed)}")
    return 1 if failed else 0


async def row(bench: Bench, name: str) -> tuple[list[Figure], str]:
    """The figures of a row, or the reason why there are none."""
    try:
        return await bench.measure(name), ""
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        reason = shortened(f"{type(error).__name__}: {error}")
        bench.say(f"{name} failed: {reason}")
        return [], reason


def shortened(text: str, most: int = 500) -> str:
    """The text in one line, cut if it is long: errors may contain a log."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}..."


def machine() -> dict[str, object]:
    """The machine of the measurement."""
    memory = round(psutil.virtual_memory().total / 2**30)
    load = [round(value, 1) for value in psutil.getloadavg()]
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    return {
        "processors": psutil.cpu_count(),
        "memory_gib": memory,
        "load": load,
        "when": when,
        "system": platform.platform(),
    }


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
