"""Offsets of Java connectors are set and deleted by REST as with Kafka Connect.

The connector's class is called for each change, and its result decides.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from support.eventually import eventually
from support.java.kit import needs_java, packed
from support.kafka.topics import create_topic, messages
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
DONE = "The offsets for this connector have been {} successfully"
OURS_ONLY = "The Connect framework-managed offsets for this connector have been {} successfully. However"
REFUSALS = {
    "fails": "not these offsets",
    "never": "Failed to modify offsets for connector {} because it doesn't support external modification of offsets",
}


class Altered:
    """One connector whose offsets are changed, and the file to which its classes write the arguments of their calls."""

    def __init__(self, worker: WorkerProcess, name: str, config: Mapping[str, str], calls: Path) -> None:
        self.worker, self.name, self.calls = worker, name, calls
        self.config = {**config, "log": str(calls), "alters": "yes"}

    def noted(self, word: str) -> list[str]:
        """The entries of the file under a word, in order."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split(" ")[0] == word]

    async def put(self, **more: str) -> None:
        """Creates the connector, or changes its configuration."""
        body = {**self.config, **more}
        response = await self.worker.ask("PUT", f"/connectors/{self.name}/config", body, timeout=300)
        assert response.status_code in (200, 201), response.text

    async def offsets(self) -> dict[str, int]:
        """The committed offsets, by the last word of their partition."""
        rows = (await self.worker.ask("GET", f"/connectors/{self.name}/offsets")).json()["offsets"]
        return {str(list(row["partition"].values())[-1]): next(iter(row["offset"].values())) for row in rows}

    async def until_at(self, offsets: Mapping[str, int]) -> None:
        """Returns once exactly these offsets are committed."""

        async def there() -> bool:
            return await self.offsets() == offsets

        await eventually(there, what=f"{self.name} is at {offsets}")

    async def stop(self) -> None:
        """Stops it, and returns when its offsets may be changed."""
        assert (await self.worker.ask("PUT", f"/connectors/{self.name}/stop")).status_code == 204

        async def stopped() -> bool:
            status = (await self.worker.ask("GET", f"/connectors/{self.name}/status")).json()
            return status["connector"]["state"] == "STOPPED" and not status["tasks"]

        await eventually(stopped, what=f"{self.name} is stopped")

    async def resume(self) -> None:
        """Resumes the connector."""
        assert (await self.worker.ask("PUT", f"/connectors/{self.name}/resume")).status_code == 202

    async def alter(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> tuple[int, str]:
        """Sets one offset, or deletes it; returns the status and the message."""
        rows = [{"partition": partition, "offset": offset}]
        path = f"/connectors/{self.name}/offsets"
        return _said(await self.worker.ask("PATCH", path, {"offsets": rows}, timeout=300))

    async def reset(self) -> tuple[int, str]:
        """Deletes all offsets; returns the status and the message."""
        return _said(await self.worker.ask("DELETE", f"/connectors/{self.name}/offsets", timeout=300))

    async def is_heard(self, partition: Mapping[str, Any], offset: Mapping[str, Any], at: Mapping[str, int]) -> None:
        """The answer carries the class's refusal of a change, and only changes that it permits take effect."""
        for does, value in REFUSALS.items():
            await self.put(alters=does)
            for code, message in (await self.alter(partition, offset), await self.reset()):
                assert code == 500
                assert value.format(self.name) in message
            assert await self.offsets() == at, "a refused change has no effect"
        await self.put(alters="no")
        code, message = await self.alter(partition, offset)
        assert code == 200
        assert message.startswith(OURS_ONLY.format("altered"))
        code, message = await self.reset()
        assert code == 200
        assert message.startswith(OURS_ONLY.format("reset"))
        assert await self.offsets() == {}


def _said(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["message"]


async def test_offsets_of_java_connectors_are_set_and_deleted(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    extra = {
        "plugin.path": str(await packed(tmp_path)),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.heap.bytes": str(64 << 20),
        "offset.flush.interval.ms": "500",
    }
    create_topic(bootstrap, "java-given")
    create_topic(bootstrap, "java-taken", 2)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "javaoffsets", spark.address, extra)
    async with workers(worker):
        fields = {"connector.class": "acme.ScriptedSource", "topics": "java-given"}
        taken = {"connector.class": "acme.ScriptedSink", "topics": "java-taken"}
        await asyncio.gather(
            of_a_source(Altered(worker, "given", fields, tmp_path / "given"), bootstrap),
            of_a_sink(Altered(worker, "taken", taken, tmp_path / "taken"), bootstrap),
        )
        assert await worker.end() == 0


async def of_a_source(source: Altered, bootstrap: str) -> None:
    part = {"part": "p0"}

    async def values() -> list[str]:
        actual_messages = await asyncio.to_thread(messages, bootstrap, "java-given")
        return [(actual_message.value() or b"").decode() for actual_message in actual_messages]

    await source.put()
    await source.until_at({"p0": 99})
    code, message = await source.alter(part, {"n": 49})
    assert code == 400, "it runs"
    assert "must be in the STOPPED state" in message
    await source.stop()
    assert await source.alter(part, {"n": 49}) == (200, DONE.format("altered"))
    assert source.noted("alter") == ["[{part=p0}={n=49}]"]
    await source.until_at({"p0": 49})
    await source.resume()
    await source.until_at({"p0": 99})
    every = [f"v{n}" for n in range(100)]
    assert await values() == [*every, *every[50:]]
    await source.stop()
    assert await source.reset() == (200, DONE.format("reset"))
    assert source.noted("alter")[1:] == ["[{part=p0}=null]"]
    assert await source.offsets() == {}
    await source.resume()
    await source.until_at({"p0": 99})
    assert await values() == [*every, *every[50:], *every]
    await source.stop()
    assert await source.alter(part, None) == (200, DONE.format("altered"))
    assert source.noted("alter")[2:] == ["[{part=p0}=null]"]
    assert await source.offsets() == {}
    assert await source.alter({"part": "p7"}, {"n": 7}) == (200, DONE.format("altered"))
    await source.is_heard(part, {"n": 3}, {"p7": 7})


async def of_a_sink(sink: Altered, bootstrap: str) -> None:
    second = {"kafka_topic": "java-taken", "kafka_partition": 1}

    def send() -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for n in range(20):
            producer.produce("java-taken", f"v{n}".encode(), key=b"k", headers=[("h", b"0")], partition=n % 2)
        assert producer.flush(300) == 0

    def put() -> list[str]:
        return [line.split(" ")[4] for line in sink.noted("record")]

    await asyncio.to_thread(send)
    await sink.put()
    await sink.until_at({"0": 10, "1": 10})
    code, message = await sink.alter(second, {"kafka_offset": 4})
    assert code == 400, "it runs"
    assert "must be in the STOPPED state" in message
    await sink.stop()
    assert await sink.alter(second, {"kafka_offset": 4}) == (200, DONE.format("altered"))
    assert sink.noted("alter") == ["[java-taken-1=4]"]
    before = len(put())
    await sink.resume()
    await sink.until_at({"0": 10, "1": 10})
    assert put()[before:] == ["v9", "v11", "v13", "v15", "v17", "v19"]
    await sink.stop()
    assert await sink.alter(second, None) == (200, DONE.format("altered"))
    assert sink.noted("alter")[1:] == ["[java-taken-1=null]"]
    assert await sink.offsets() == {"0": 10}
    before = len(put())
    await sink.resume()
    await sink.until_at({"0": 10, "1": 10})
    assert sorted(put()[before:]) == sorted(f"v{n}" for n in range(1, 20, 2))
    await sink.stop()
    assert await sink.reset() == (200, DONE.format("reset"))
    assert sink.noted("alter")[2:] == ["[java-taken-0=null, java-taken-1=null]"]
    assert await sink.offsets() == {}
    assert await sink.alter(second, {"kafka_offset": 3}) == (200, DONE.format("altered"))
    await sink.is_heard(second, {"kafka_offset": 5}, {"1": 3})
