"""Rounds, one a seed: `python -m operations [--seeds 3] [--first 1] [--seconds 60]`; `make operations` sets the path.

Prints a line a round, and each violation as it is found. Histories and logs are kept in build/operations.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from chaos.operations.round import Round
from support.brokers.broker import running_broker
from support.spark.service import spark_service

KEPT = Path("build/operations")
MORE_SECONDS = 300.0
"""The limit of a round beyond the time in which clients send requests."""


async def rounds(arguments: argparse.Namespace) -> int:
    """Runs the rounds; returns the number of unclean ones."""
    bad = 0
    with tempfile.TemporaryDirectory(prefix="keelman-operations-") as name:
        folder = Path(name)
        async with running_broker(folder / "broker") as bootstrap, spark_service(folder / "spark") as spark:
            for seed in range(arguments.first, arguments.first + arguments.seeds):
                bad += await _round(seed, arguments, bootstrap, spark.address, folder / str(seed))
    return bad


async def _round(seed: int, arguments: argparse.Namespace, bootstrap: str, spark: str, folder: Path) -> bool:
    """Runs a round; returns whether it was unclean."""
    folder.mkdir()
    begun, stored = time.monotonic(), arguments.kept / f"seed{seed}"
    round = Round(seed, arguments.seconds, bootstrap, spark, folder)
    try:
        async with asyncio.timeout(arguments.seconds + MORE_SECONDS):
            await round.run()
    except Exception as error:  # any error: the other rounds must still run
        round.violation(f"not run to its end: {type(error).__name__}: {error}")
    finally:
        round.keep(stored)
    print(f"{round} ({time.monotonic() - begun:.0f} s, kept in {stored})", flush=True)
    return bool(round.violations)


def main() -> int:
    """Returns 0 if every round was clean."""
    parser = argparse.ArgumentParser(prog="make operations", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how many rounds")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--seconds", type=float, default=60, help="how long clients ask in a round")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where histories and logs are kept")
    return min(1, asyncio.run(rounds(parser.parse_args())))


if __name__ == "__main__":
    sys.exit(main())
