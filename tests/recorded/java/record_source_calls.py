"""Records how Kafka Connect calls a Java source task: writes source_calls.json beside this file.

Run it by hand when the steps or the connector change: `python -m recorded.java.record_source_calls`. It starts a broker
and two real workers, one of which is exactly-once, with the connector of support.java.kit.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from keelman.testing.brokers.broker import running_broker
from keelman.testing.servers.connect_worker import ConnectProcess
from recorded.java.source_calls_steps import WORKER, play, told
from support.java.kit import compiled

FILE = Path(__file__).with_name("source_calls.json")


async def main() -> None:
    """Records everything."""
    recorded = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classes = await compiled(folder / "classes")
        for guarantee, support in (("exactly once", "enabled"), ("at least once", "disabled")):
            place = folder / support
            (place / "calls").mkdir(parents=True)
            async with running_broker(place / "broker") as servers:
                properties = {"exactly.once.source.support": support, **WORKER}
                worker = ConnectProcess(place / "worker", servers, "calls", properties, more_jars=(classes,))
                await worker.start()
                try:
                    once = support == "enabled"
                    found = await play(worker.ask, servers, place / "calls", "calls", exactly_once=once)
                finally:
                    await worker.end()
            recorded[guarantee] = told(found, exactly_once=once)
    FILE.write_text(json.dumps(recorded, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
