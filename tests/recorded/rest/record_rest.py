"""Records Apache Kafka Connect's answers to `rest_steps`: writes rest.json beside this file.

Run it by hand when the list changes: `python -m recorded.rest.record_rest`. It starts a broker and, one after the
other, real Connect workers.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from aiokafka.admin import NewTopic

from keelman.kafka.clients import admin_client
from recorded.one_a_line import one_a_line
from recorded.rest.rest_steps import GROUP, SECTIONS
from support.brokers.broker import running_broker
from support.servers.connect_worker import ConnectProcess
from support.worker.rest import Player, fresh_client

HERE = Path(__file__).parent


async def main() -> None:
    """Records all sections, or the named ones; the record of other sections remains."""
    file = HERE / "rest.json"
    recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    argv = sys.argv[1:] or list(SECTIONS)
    with tempfile.TemporaryDirectory() as folder:
        async with running_broker(Path(folder) / "broker") as servers:
            async with admin_client({"bootstrap.servers": servers}, client_id="recorder") as admin:
                await admin.create_topics([NewTopic("rest-lines", 2, 1)])
            for number, (name, (properties, steps)) in enumerate(SECTIONS.items()):
                if name not in argv:
                    continue
                group = GROUP if number == 0 else f"{GROUP}-{number}"
                worker = ConnectProcess(Path(folder) / group, servers, group, properties)
                await worker.start()
                try:
                    recorded[name] = {"properties": dict(properties), "steps": await _played(worker, servers, steps)}
                finally:
                    await worker.end()
    file.write_text(one_a_line(recorded), encoding="utf-8")
    print(sum(len(section["steps"]) for section in recorded.values()), "steps recorded")


async def _played(worker: ConnectProcess, servers: str, steps: Any) -> list[dict[str, Any]]:
    hidden = {f"127.0.0.1:{worker.port}": "{worker}", servers: "{broker}"}
    player = Player(worker.url, servers, hidden, patient=True)
    played = []
    async with fresh_client() as client:
        root = (await client.get(worker.url)).json()
        hidden |= {root["commit"]: "{commit}", root["kafka_cluster_id"]: "{cluster}"}
        try:
            for step in steps:
                print(step.name, flush=True)  # shows which one hangs
                answer = await player.play(client, step)
                played.append({**step.plain(), **({} if answer is None else {"answer": answer})})
        finally:
            await player.close()
    return played


if __name__ == "__main__":
    asyncio.run(main())
