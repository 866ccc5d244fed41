"""Records the offsets that Kafka Connect commits for a Java source: writes java_offsets.json beside this.

Run it by hand: `python -m recorded.java.record_java_offsets`. It starts a broker and a real worker, exactly-once, with
the connector of support.java.kit. Keys and values are copied from the offset topic, byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from recorded.one_a_line import one_a_line
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.java.kit import compiled
from support.kafka.topics import create_topic, messages
from support.servers.connect_worker import ConnectProcess

FILE = Path(__file__).with_name("java_offsets.json")
CONNECTOR = "odd offsets"
CONFIG = {
    "connector.class": "acme.ScriptedSource",
    "topics": "odd",
    "records": "100",
    "parts": "4",
    "odd.offsets": "yes",
    "forgets": "98",
}
LAST = 99


async def main() -> None:
    """Records everything."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "classes").mkdir()
        classes = await compiled(folder / "classes")
        async with running_broker(folder / "broker") as servers:
            create_topic(servers, "odd")
            properties = {"exactly.once.source.support": "enabled"}
            worker = ConnectProcess(folder / "worker", servers, "odd", properties, more_jars=(classes,))
            await worker.start()
            try:
                config = {**CONFIG, "name": CONNECTOR, "log": str(folder / "calls")}
                answer = await worker.ask("POST", "/connectors", {"name": CONNECTOR, "config": config})
                assert answer.status_code == 201, answer.text
                await eventually(lambda: done(servers), seconds=90, what="all is committed")
                values = {message.key() or b"": message.value() for message in messages(servers, "odd-offsets")}
            finally:
                await worker.end()
    rows = [[key.decode(), None if value is None else value.decode()] for key, value in sorted(values.items())]
    FILE.write_text(one_a_line(rows, ascii_only=True))


async def done(servers: str) -> bool:
    """Whether the offset of the last record is committed."""
    actual_messages = await asyncio.to_thread(messages, servers, "odd-offsets")
    return any(
        actual_message.value() and json.loads(actual_message.value() or b"{}").get("n") == LAST
        for actual_message in actual_messages
    )


if __name__ == "__main__":
    asyncio.run(main())
