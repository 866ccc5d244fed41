"""Changes of topics under running workers: more partitions, and settings that a start would refuse."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from component.connectors.test_mirror import alter
from component.kafka.test_topic_table import more_partitions
from keelman.worker.config.typed import checked
from keelman.worker.storage.topics import KafkaTopics
from support.eventually import eventually
from support.worker.processes import LinkSide, WorkerProcess, workers
from support.worker_properties import OF_A_GROUP

pytestmark = pytest.mark.component


async def test_offsets_in_partitions_that_were_added_are_read(
    bootstrap: str, link: tuple[LinkSide, str], name: str, tmp_path: Path
) -> None:
    side, address = link
    source = tmp_path / "in"
    source.write_text("one\ntwo\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "lines"}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, name, address)
    key = json.dumps(["src", {"filename": str(source)}], separators=(",", ":"))

    async def offsets() -> Any:
        return (await worker.ask("GET", "/connectors/src/offsets")).json()["offsets"]

    async with workers(worker):
        await worker.ask("POST", "/connectors", {"name": "src", "config": config})
        await eventually(lambda: side.of("src"), what="it runs")
        topic = f"{name}-offsets"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        before = len(admin.list_topics(topic, 60).topics[topic].partitions)
        more_partitions(bootstrap, topic, before + 2)
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce(topic, b'{"position":4}', key, before + 1)
        assert producer.flush(300) == 0
        assert [row["offset"] for row in await offsets()] == [{"position": 4}]
        (run,) = side.of("src")
        side.fail(run, retriable=True)
        (run,) = await eventually(lambda: [r for r in side.of("src") if r is not run], what="it runs again")
        assert run.confirmed == [(key.encode(), b'{"position":4}')], "the next copy run continues there"
        assert "topic_has_more_partitions" in worker.output
        assert await worker.end() == 0


async def test_a_topic_that_a_start_would_refuse_is_named_while_workers_run(
    bootstrap: str, name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("config", "offset", "status")}
    properties = checked({**OF_A_GROUP, **own, "group.id": name, "bootstrap.servers": bootstrap})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    seen = ""

    def told(what: str) -> bool:
        nonlocal seen
        seen += capfd.readouterr().out
        return what in seen

    async with KafkaTopics.open(properties, client_id="test") as topics:
        watching = asyncio.create_task(topics.watch(0.05))
        try:
            alter(admin, properties.offset_topic.name, "cleanup.policy", "delete")
            more_partitions(bootstrap, properties.config_topic.name, 2)
            for problem in ("has cleanup.policy=delete, needed", "has 2 partitions, needed are exactly 1"):
                await eventually(lambda problem=problem: told(problem), what=problem)
            assert seen.count("has cleanup.policy=delete") == 1, "once"
        finally:
            watching.cancel()
