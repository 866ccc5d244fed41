"""Records how Apache Kafka Connect calls a Java sink task: writes call_sinks.json beside this file.

Run it by hand when the steps change: `python -m recorded.java.record_call_sinks`, with names for these alone. It starts
a broker and a real Connect worker with the classes of support.java.kit.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from recorded.java.call_sink_steps import GROUP, SCENARIOS, WORKER, play_all
from support.brokers.broker import running_broker
from support.java.kit import compiled
from support.servers.connect_worker import ConnectProcess

FILE = Path(__file__).with_name("call_sinks.json")

COMMAND = "python -m recorded.java.record_call_sinks"


def recorded() -> dict[str, list[str]]:
    """The calls of each scenario in Kafka Connect."""
    calls: dict[str, list[str]] = json.loads(FILE.read_text())["calls"] if FILE.exists() else {}
    return calls


async def main(only: Sequence[str]) -> None:
    """Plays all, or only these, and writes the calls."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "classes").mkdir()
        classes = await compiled(folder / "classes")
        async with running_broker(folder / "broker") as bootstrap:
            worker, other = (
                ConnectProcess(folder / name, bootstrap, "recorded", {**WORKER, **GROUP}, more_jars=(classes,))
                for name in ("connect", "other")
            )
            acts = {"join": other.start, "leave": other.end}
            await worker.start()
            try:
                actual_play_all = await play_all(bootstrap, worker.ask, folder / "calls", only)
                actual_play_all |= await play_all(bootstrap, worker.ask, folder / "calls", only, acts=acts)
            finally:
                for item in (other, worker):
                    if item.child is not None:
                        await item.end()
    calls = {**recorded(), **actual_play_all}
    fields = {"recorded by": COMMAND, "calls": {name: calls[name] for name in SCENARIOS}}
    FILE.write_text(json.dumps(fields, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
