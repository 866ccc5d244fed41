"""Runs the benchmarks: `python -m bench [name ...]` with `tests` on the path; `make bench [BENCH=name]`."""

from __future__ import annotations

import argparse
import asyncio
import platform
import shutil
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
from rich.console import Console

from bench.figures import save, show
from bench.rows import Bench
from keelman.testing.broker import running_broker

NAMES = (
    *("mirror-eos", "file-source", "file-sink", "trickle", "active-300", "wake", "start"),
    *("worker-start", "create", "idle-10k", "list-10k", "failover", "takeover"),
    *("json-smt", "avro"),
)
RESULTS = Path("build/bench.json")


async def main() -> int:
    """Runs what is asked for, prints the table, writes build/bench.json; the exit code says only whether all ran."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], help="rows to measure; all when none is named")
    parser.add_argument("--records", type=int, default=5_000_000, help="records of the throughput rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--trickle", type=int, default=400, help="records of one round of the trickle")
    parser.add_argument("--connectors", type=int, default=300)
    parser.add_argument("--samples", type=int, default=60, help="samples of wake, start and create")
    parser.add_argument("--parked", type=int, default=10_000, help="connectors of idle-10k")
    parser.add_argument("--patience", type=float, default=7200, help="seconds that idle-10k may take to be idle")
    options = parser.parse_args()
    console = Console(width=200)
    folder = Path(tempfile.mkdtemp(prefix="keelman-bench-"))
    begun = time.monotonic()
    try:
        async with AsyncExitStack() as stack:
            bootstrap = await stack.enter_async_context(running_broker(folder / "broker", lasting=True))
            bench = Bench(stack, console, folder, bootstrap, options)
            try:
                for name in options.names or NAMES:
                    await getattr(bench, name.replace("-", "_"))()
            finally:
                if bench.figures:
                    show(bench.figures, console)
                    save(bench.figures, RESULTS, machine())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bench.say(f"took {(time.monotonic() - begun) / 60:.1f} minutes; figures in {RESULTS}")
    return 0


def machine() -> dict[str, object]:
    """What it was measured on."""
    memory = round(psutil.virtual_memory().total / 2**30)
    load = [round(value, 1) for value in psutil.getloadavg()]
    when = time.strftime("%Y-%m-%d %H:%M")
    return {
        "processors": psutil.cpu_count(),
        "memory_gib": memory,
        "load": load,
        "when": when,
        "system": platform.platform(),
    }


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
