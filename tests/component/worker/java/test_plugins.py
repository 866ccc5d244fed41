"""Java plugins in a worker with the real Spark service: listed, validated, and copying in slots of their own."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from keelman.connectors.java import jvm
from support.eventually import eventually
from support.java.kit import needs_java
from support.kafka.topics import create_topic, messages
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
APACHE = "org.apache.kafka.connect"
SOURCE = f"java:{APACHE}.file.FileStreamSourceConnector"
SINK = f"java:{APACHE}.file.FileStreamSinkConnector"
LINES = 20_000
WORKER = {"keelman.plugin.answer.timeout.ms": "80000", "offset.flush.interval.ms": "500"}
"""Properties of a worker with Java plugins on a busy machine, whose sinks commit often."""


async def file_plugin(folder: Path) -> Path:
    """A plugin path with Kafka Connect's own file connectors."""
    jars = await jvm.fetch_runtime_jars()
    target = folder / "plugins" / "kafka-connect-file"
    target.mkdir(parents=True)
    for jar in jars:
        if jar.name.startswith("connect-file-"):
            shutil.copy(jar, target)
    return target.parent


async def test_a_java_source_copies_exactly_once_through_transforms(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    plugins, lines = await file_plugin(tmp_path), tmp_path / "lines.txt"
    lines.write_text("".join(f"{n}\n" for n in range(LINES)))
    config = {
        "connector.class": SOURCE,
        "file": str(lines),
        "topic": "java-lines",
        "value.converter": f"{APACHE}.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "transforms": "hoist,mark",
        "transforms.hoist.type": f"{APACHE}.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.mark.type": f"{APACHE}.transforms.InsertField$Value",
        "transforms.mark.static.field": "seen",
        "transforms.mark.static.value": "yes",
        "transforms.mark.predicate": "of",
        "predicates": "of",
        "predicates.of.type": f"{APACHE}.transforms.predicates.TopicNameMatches",
        "predicates.of.pattern": "java-.*",
    }
    create_topic(bootstrap, "java-lines")
    worker = WorkerProcess(
        tmp_path / "worker", bootstrap, "javalines", spark.address, {"plugin.path": str(plugins), **WORKER}
    )
    async with workers(worker):

        async def listed() -> bool:
            response = (await worker.ask("GET", "/connector-plugins")).json()
            return {"class": SOURCE, "type": "source", "version": "4.3.0"} in response

        await eventually(listed, what="the plugin's classes are listed")
        keys = (await worker.ask("GET", f"/connector-plugins/{SOURCE}/config")).json()
        assert [key["name"] for key in keys[:3]] == ["file", "topic", "batch.size"]
        refused = await worker.ask("POST", "/connectors", {"name": "x", "config": {**config, "topic": ""}})
        assert refused.status_code == 400
        assert "Invalid value  for configuration topic: String must be non-empty" in refused.json()["message"]

        response = await worker.ask("POST", "/connectors", {"name": "lines", "config": config})
        assert (response.status_code, response.json()["type"]) == (201, "source"), response.text
        await worker.reaches("lines", "RUNNING", "RUNNING", seconds=300)

        async def offset() -> int:
            rows = (await worker.ask("GET", "/connectors/lines/offsets")).json()["offsets"]
            return int(rows[0]["offset"]["position"]) if rows else 0

        await eventually(_reaches(offset, lines), what="all lines are committed")
        _kill_slots(spark)
        with lines.open("a") as file:
            file.write("".join(f"{n}\n" for n in range(LINES, 2 * LINES)))
        await eventually(_reaches(offset, lines), what="all lines are committed after a kill")
        copied = [json.loads(message.value()) for message in await asyncio.to_thread(messages, bootstrap, "java-lines")]
        assert copied == [{"line": str(n), "seen": "yes"} for n in range(2 * LINES)]
        assert await worker.end() == 0


async def test_a_java_sink_loses_nothing_and_its_offsets_can_be_set(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    plugins, target = await file_plugin(tmp_path), tmp_path / "copied.txt"
    config = {"connector.class": SINK, "file": str(target), "topics": "java-sunk"}
    create_topic(bootstrap, "java-sunk", 2)
    worker = WorkerProcess(
        tmp_path / "worker", bootstrap, "javasunk", spark.address, {"plugin.path": str(plugins), **WORKER}
    )

    def send(numbers: range) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        for n in numbers:
            producer.produce("java-sunk", str(n).encode(), partition=n % 2)
        assert producer.flush(300) == 0

    async with workers(worker):
        await asyncio.to_thread(send, range(LINES))
        response = await worker.ask("PUT", "/connectors/javasunk/config", config)
        assert (response.status_code, response.json()["type"]) == (201, "sink"), response.text

        async def committed(count: int = LINES) -> bool:
            rows = (await worker.ask("GET", "/connectors/javasunk/offsets")).json()["offsets"]
            return sum(row["offset"]["kafka_offset"] for row in rows) == count

        await eventually(committed, what="all records are committed")
        assert sorted(map(int, target.read_text().splitlines())) == list(range(LINES))
        await asyncio.to_thread(send, range(LINES, 2 * LINES))
        _kill_slots(spark)
        await eventually(lambda: committed(2 * LINES), what="all are committed after a kill")
        assert set(map(int, target.read_text().splitlines())) == set(range(2 * LINES))
        before = len(target.read_text().splitlines())
        assert (await worker.ask("PUT", "/connectors/javasunk/stop")).status_code == 204
        rows = [
            {"partition": {"kafka_topic": "java-sunk", "kafka_partition": 1}, "offset": {"kafka_offset": LINES - 5}}
        ]

        async def altered() -> bool:
            answer = await worker.ask("PATCH", "/connectors/javasunk/offsets", {"offsets": rows})
            return answer.status_code == 200

        await eventually(altered, what="offsets of the stopped connector are set")
        assert (await worker.ask("PUT", "/connectors/javasunk/resume")).status_code == 202
        await eventually(lambda: committed(2 * LINES), what="the last ones are read again")
        assert len(target.read_text().splitlines()) == before + 5
        assert await worker.end() == 0


def _reaches(offset: Any, file: Path) -> Any:
    async def reached() -> bool:
        return int(await offset()) == file.stat().st_size

    return reached


def _kill_slots(spark: SparkService) -> None:
    """Kills those slots of the service that have started a Java machine."""
    pids = [pid for pid in spark.slot_pids() if _has_java(pid)]
    assert pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _has_java(pid: int) -> bool:
    try:
        return "libjvm.so" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False
