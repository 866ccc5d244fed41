"""Offsets of sinks outlive ten times their brokers' retention, for every kind and every state of a sink.

The broker deletes the offsets of a group a minute after its last member has left, and makes the first member of a group
wait for others as brokers do by default.
"""

import asyncio
import signal
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from component.worker.java.test_plugins import SINK, file_plugin
from keelman.kafka.groups.changes import GroupChanges
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.java.kit import needs_java
from support.kafka.topics import create_topic
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java(), pytest.mark.slow, pytest.mark.timeout(1500)]

RETENTIONS, MINUTE = 10, 60.0
BROKER = (
    "--properties=offsets.retention.minutes=1,offsets.retention.check.interval.ms=1000,"
    "group.initial.rebalance.delay.ms=3000,offsets.topic.num.partitions=3,transaction.state.log.num.partitions=3"
)
JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
VERBS = {"paused": "pause", "stopped": "stop"}


def sinks(folder: Path) -> dict[str, dict[str, str]]:
    """By name: a kind and the intended state."""
    java = {"connector.class": SINK, **JSON}
    spark = {"connector.class": "SparkSink", "spark.format": "parquet", "spark.write.every.ms": "100"}
    ours = {"connector.class": "FileStreamSink"}
    kafka = {"connector.class": "KafkaSink"}
    kinds = {"java": java, "spark": spark, "file": ours, "kafka": kafka}
    states = [
        *(("java", state) for state in ("parked", "paused", "stopped", "failed", "deleted")),
        *(("file", "parked"), ("file", "stopped"), ("kafka", "parked"), ("spark", "idle"), ("spark", "paused")),
    ]
    sinks = {}
    for kind, state in states:
        out = str(folder / f"{kind}-{state}")
        more = {"file": out, "spark.path": out, "topic": f"{kind}-{state}-${{topic}}"}
        topics = "bad" if state == "failed" else "good"
        sinks[f"{kind}-{state}"] = {**kinds[kind], **more, "topics": topics, "keelman.park.after.ms": "3000"}
    return sinks


class Scene:
    """Two workers, and the groups of their sinks."""

    def __init__(self, bootstrap: str, first: WorkerProcess, second: WorkerProcess, names: list[str]) -> None:
        self.bootstrap, self.workers, self.names = bootstrap, [first, second], names
        client = {"bootstrap.servers": bootstrap}
        self._groups = {name: GroupChanges(client, f"connect-{name}", client_id="test") for name in names}

    def send(self, *values: bytes, topic: str = "good") -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for value in values:
            producer.produce(topic, value)
        assert producer.flush(300) == 0

    async def offsets(self, *names: str) -> dict[str, int]:
        """The offset of each group; -1 for none."""
        offsets = {name: await self._groups[name].offsets() for name in names or self.names}
        return {name: next(iter(offsets.values()), -1) for name, offsets in offsets.items()}

    async def until_at(self, offset: int, *names: str) -> None:
        async def there() -> bool:
            return set((await self.offsets(*names)).values()) == {offset}

        try:
            await eventually(there, every=0.5, what=f"all are at {offset}")
        except AssertionError as error:
            raise AssertionError(f"{await self.offsets(*names)}\n{self.workers[0].output[-3000:]}") from error

    async def order(self, name: str, state: str) -> None:
        """Brings the sink to its state."""
        worker = self.workers[0]
        if state in VERBS:
            await worker.ask("PUT", f"/connectors/{name}/{VERBS[state]}")
        elif state == "deleted":
            await worker.ask("DELETE", f"/connectors/{name}")
        elif state == "failed":
            self.send(b"{no json", topic="bad")


async def test_offsets_outlive_ten_retentions(spark: SparkService, tmp_path: Path) -> None:
    plugins = await file_plugin(tmp_path)
    configs = sinks(tmp_path)
    async with running_broker(tmp_path / "broker", BROKER) as bootstrap:
        for topic in ("good", "bad"):
            create_topic(bootstrap, topic)
        extra = {"plugin.path": str(plugins), "keelman.plugin.answer.timeout.ms": "80000"}
        pair = [WorkerProcess(tmp_path / n, bootstrap, "retention", spark.address, extra) for n in ("one", "two")]
        scene = Scene(bootstrap, *pair, list(configs))
        async with workers(*pair):
            for topic in ("good", "bad"):
                scene.send(b"1", b"2", b"3", topic=topic)
            for name, config in configs.items():
                response = await pair[0].ask("POST", "/connectors", {"name": name, "config": config})
                assert response.status_code == 201, response.text
            await scene.until_at(3)
            for name in configs:
                await scene.order(name, name.partition("-")[2])
            await pair[0].reaches("java-failed", "RUNNING", "FAILED", seconds=300)
            names = [name for name in configs if name != "java-deleted"]
            begun, disturbances = time.monotonic(), {2: (killed, pair[0]), 5: (ended, pair[1])}
            for number in range(RETENTIONS):
                if number in disturbances:
                    disturb, worker = disturbances[number]
                    await disturb(worker)
                while time.monotonic() - begun < (number + 1) * MINUTE:
                    now = await scene.offsets(*names)
                    assert set(now.values()) == {3}, f"{time.monotonic() - begun:.0f} s: {now}"
                    await asyncio.sleep(2)
            assert await scene.offsets("java-deleted") == {"java-deleted": -1}, (
                "those of deleted connectors are forgotten"
            )

            scene.send(b"4")
            for name in ("java-paused", "spark-paused", "java-stopped", "file-stopped"):
                await pair[0].ask("PUT", f"/connectors/{name}/resume")
            good = [name for name in names if name != "java-failed"]
            await scene.until_at(4, *good)
            for name in good:
                if name.startswith(("java", "file")):
                    assert (tmp_path / name).read_text().split() == ["1", "2", "3", "4"], name
            for worker in pair:
                assert await worker.end() == 0


async def killed(worker: WorkerProcess) -> None:
    """Kills the worker, and restarts it when others have taken over."""
    await worker.end(signal.SIGKILL)
    await worker.start()


async def ended(worker: WorkerProcess) -> None:
    """The same with an orderly end."""
    assert await worker.end() == 0
    await worker.start()
