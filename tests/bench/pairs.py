"""This checkout beside another one, on the same broker in the same minutes: `make bench-pairs OLD=folder [BENCH=name]`.

Both worker clusters run all the time and copy in turn, so that a slow phase of the machine slows both: differences of a
few per cent show. The other checkout needs no environment of its own, but its wire code (`make protos`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from rich.console import Console

from bench.copying import throughput, trickle
from bench.measuring.sites import Site
from bench.measuring.systems import Keelman, cpu_seconds
from support.places import ROOT

COPIES = {
    "mirror-eos": throughput.mirror,
    "file-source": throughput.file_source,
    "file-sink": throughput.file_sink,
    "json-smt": throughput.json_smt,
}
TRICKLE = "trickle"
NEW, OLD = "this", "other"
WARM_UP = 2


async def main() -> None:
    """Prints a line a row: both medians, the median of the rounds' ratios with their range, processor seconds."""
    parser = argparse.ArgumentParser(prog="make bench-pairs", description=__doc__)
    parser.add_argument("other", type=Path, help="the folder of the other checkout")
    parser.add_argument("names", nargs="*", choices=[[], *COPIES, TRICKLE], help="rows; all when none is named")
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--trickle", type=int, default=400, help="records of one round of the trickle")
    options = parser.parse_args()
    console = Console(width=200)

    def say(text: str) -> None:
        console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {text}", highlight=False)

    with tempfile.TemporaryDirectory(prefix="keelman-pairs-") as name:
        async with AsyncExitStack() as stack:
            site = Site(stack, Path(name) / "site", options.records, say)
            await site.start()
            systems = {}
            for item, checkout in ((NEW, ROOT), (OLD, options.other.resolve())):
                systems[item] = await started(stack, Path(name) / item, site.bootstrap, checkout)
            load = site.load
            for row in options.names or [*COPIES, TRICKLE]:
                figures: dict[str, list[tuple[float, float]]] = {NEW: [], OLD: []}
                for turn in range(-WARM_UP, options.rounds):
                    for item in (NEW, OLD) if turn % 2 == 0 else (OLD, NEW):
                        result = await measured(systems[item], load, row, options.trickle)
                        if turn >= 0:
                            figures[item].append(result)
                say(line(row, figures[NEW], figures[OLD]))


async def started(stack: AsyncExitStack, folder: Path, bootstrap: str, checkout: Path) -> Keelman:
    """A worker and its Spark service that run the code of a checkout, until the end of the stack."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = ":".join(str(checkout / part) for part in ("libs", "services"))
    try:
        system = Keelman(folder, bootstrap, {"exactly.once.source.support": "enabled"}, name=folder.name)
        stack.push_async_callback(system.end)
        await system.start()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return system


async def measured(system: Keelman, load: throughput.Load, row: str, records: int) -> tuple[float, float]:
    """Records a second, or the trickle's median in ms; and processor seconds for a million records."""
    before = cpu_seconds(system.processes())
    if row == TRICKLE:
        median = statistics.median(await trickle.trickle(system, load, {}, records=records))
    else:
        median = await COPIES[row](system, load, {})
    count = records if row == TRICKLE else load.count
    return median, (cpu_seconds(system.processes()) - before) * 1e6 / count


def line(row: str, new: list[tuple[float, float]], old: list[tuple[float, float]]) -> str:
    """One row of the table."""
    ratios = sorted(a[0] / b[0] for a, b in zip(new, old, strict=True))
    (mine, my_cpu), (theirs, their_cpu) = (
        (statistics.median(item[0] for item in result), statistics.median(item[1] for item in result))
        for result in (new, old)
    )
    return (
        f"{row}: {mine:,.4g} beside {theirs:,.4g} {'ms' if row == TRICKLE else 'records/s'}, ratio "
        f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); "
        f"{my_cpu:.3f} beside {their_cpu:.3f} processor s a million"
    )


if __name__ == "__main__":
    asyncio.run(main())
