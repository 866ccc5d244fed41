"""Records which topics Apache Kafka Connect creates, or why it does not: writes topic_creation.json beside this file.

Run it by hand when `topic_creation_cases` changes: `python -m recorded.worker.record_topic_creation`. It starts a
broker that creates missing topics by itself and two Connect workers, one with `topic.creation.enable=false`.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, ResourceType

from recorded.one_a_line import one_a_line
from recorded.worker.topic_creation_cases import CASES, NONE, OFF, topic_of
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.servers.connect_worker import ConnectProcess

HERE = Path(__file__).parent

KEPT_LINES = ("org.", "Caused by: ")
TAKEN_LATE = 45.0  # Connect retries the creation of a topic that cannot be created


async def main() -> None:
    """Records all cases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").write_text("one\n")
        flags = ("--properties", "auto.create.topics.enable=true,num.partitions=4")
        async with running_broker(folder / "broker", *flags) as servers:
            results = [
                *await played(servers, folder, "on", {}, (*NONE, *CASES)),
                *await played(servers, folder, "off", {"topic.creation.enable": "false"}, OFF),
            ]
    (HERE / "topic_creation.json").write_text(one_a_line(results))


async def played(
    servers: str, folder: Path, group: str, properties: dict[str, str], cases: Any
) -> list[dict[str, Any]]:
    """Each case with its result."""
    worker = ConnectProcess(folder / group, servers, group, properties)
    await worker.start()
    try:
        return [await one(worker, servers, folder, name, config) for name, config in cases]
    finally:
        await worker.end()


async def one(worker: ConnectProcess, servers: str, folder: Path, name: str, fields: dict[str, str]) -> dict[str, Any]:
    """One case: the states, the traces' lines with messages, the topic."""
    connector = topic_of(name).removeprefix("t-")
    config = {"connector.class": "FileStreamSource", "file": str(folder / "in"), "topic": topic_of(name), **fields}
    answer = await worker.ask("POST", "/connectors", {"name": connector, "config": config})
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = {}

    async def settled() -> bool:
        nonlocal told
        status = (await worker.ask("GET", f"/connectors/{connector}/status")).json()
        parts = [status["connector"], *status["tasks"]] if "connector" in status else []
        told = {
            "name": name,
            "config": fields,
            "states": [part["state"] for part in parts],
            "traces": [lines(part["trace"]) for part in parts if "trace" in part],
            "topic": described(servers, topic_of(name)),
        }
        return "FAILED" in told["states"] or told["topic"] is not None

    await eventually(settled, seconds=TAKEN_LATE, what=f"{name} has its topic or has failed")
    await worker.ask("DELETE", f"/connectors/{connector}")
    print(told, flush=True)
    return told


def lines(trace: str) -> list[str]:
    """The lines of a trace that have messages."""
    return [line for line in trace.splitlines() if line.startswith(KEPT_LINES)]


def described(servers: str, topic: str) -> dict[str, Any] | None:
    """Partitions and explicit settings of the topic; None if it does not exist."""
    admin = AdminClient({"bootstrap.servers": servers})
    topics = admin.list_topics(timeout=10).topics
    if topic not in topics:
        return None
    resource = ConfigResource(ResourceType.TOPIC, topic)
    settings = admin.describe_configs([resource])[resource].result(10)
    own = {k: v.value for k, v in settings.items() if v.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
    return {"partitions": len(topics[topic].partitions), "settings": dict(sorted(own.items()))}


if __name__ == "__main__":
    asyncio.run(main())
