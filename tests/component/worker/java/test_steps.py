"""Converters, transforms and predicates of a Java plugin beside keelman's own connectors, among its own steps."""

from __future__ import annotations

import asyncio
import zipfile
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer

from support.eventually import eventually
from support.java.kit import compiled, needs_java
from support.kafka.topics import create_topic, messages
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
STRING = "org.apache.kafka.connect.storage.StringConverter"
SHOUT = {
    "transforms": "mark,shout",
    "transforms.mark.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms.mark.header": "mark",
    "transforms.mark.value.literal": "7",
    "transforms.shout.type": "acme.ShoutTransform",
    "transforms.shout.end": "!",
    "transforms.shout.predicate": "quiet",
    "transforms.shout.negate": "true",
    "predicates": "quiet",
    "predicates.quiet.type": "HasWord",
    "predicates.quiet.word": "quiet",
}
TOLERANT = {"errors.tolerance": "all"}


async def test_java_steps_beside_connectors_of_ours(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    classes, jar = tmp_path / "classes", tmp_path / "plugins" / "acme-1" / "acme.jar"
    jar.parent.mkdir(parents=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in (await compiled(classes)).rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    lines, copied = tmp_path / "lines", tmp_path / "copied"
    lines.write_text("one\nquiet two\ndrop three\nboom four\nfive\n")
    for topic in ("steps", "steps-in", "steps-letters"):
        create_topic(bootstrap, topic)
    extra = {"plugin.path": str(tmp_path / "plugins"), "key.converter": STRING, "value.converter": STRING}
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "javasteps", spark.address, extra)
    source = {"connector.class": "FileStreamSource", "topic": "steps", "file": str(lines), **SHOUT, **TOLERANT}
    sink = {
        "connector.class": "FileStreamSink",
        "topics": "steps-in",
        "file": str(copied),
        "value.converter": "acme.ReversedConverter",
        **SHOUT,
        **TOLERANT,
        "errors.deadletterqueue.topic.name": "steps-letters",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }

    async def put(name: str, config: dict[str, str]) -> Any:
        return await worker.ask("PUT", f"/connectors/{name}/config", config, timeout=300)

    async def listed() -> bool:
        response = (await worker.ask("GET", "/connector-plugins?connectorsOnly=false")).json()
        return {"acme.ShoutTransform", "acme.HasWord"} <= {entry["class"] for entry in response}

    async with workers(worker):
        await eventually(listed, what="the plugin is listed")
        refused = await put("lines", {**source, "predicates.quiet.type": "acme.Missing"})
        assert refused.status_code == 400, refused.text
        without = {key: value for key, value in source.items() if key != "transforms.shout.end"}
        refused = await put("lines", without)
        assert refused.status_code == 400, refused.text
        assert 'Missing required configuration "transforms.shout.end"' in refused.json()["message"]

        response = await put("lines", {**source, "value.converter": "ReversedConverter"})
        assert response.status_code == 201, response.text
        await worker.reaches("lines", "RUNNING", "RUNNING", seconds=300)
        outcome = await _read(bootstrap, "steps", 3)
        assert [message.value() for message in outcome] == [
            line[::-1] for line in (b"steps:ONE!", b"steps:quiet two", b"steps:FIVE!")
        ]
        assert [message.headers() for message in outcome] == [
            [("mark", b"7"), ("seen", b"8")],
            [("mark", b"7")],
            [("mark", b"7"), ("seen", b"8")],
        ]

        shown = await worker.ask("POST", "/connectors/lines/preview", {"records": 5, "from": "beginning"}, timeout=300)
        assert shown.status_code == 200, shown.text
        first, second, third, fourth, _ = shown.json()["records"]
        assert [step["step"] for step in first["steps"]] == ["read", "transform", "transform", "written"]
        assert first["steps"][2]["class"] == "acme.ShoutTransform"
        assert first["steps"][2]["record"]["value"] == {"schema": "string", "value": "ONE!"}
        assert second["steps"][2]["predicate"]["holds"] is True
        assert (third["outcome"], fourth["outcome"], fourth["error"]["message"]) == ("dropped", "failed", "boom")

        response = await put("written", sink)
        assert response.status_code == 201, response.text
        await asyncio.to_thread(_send, bootstrap, ["steps-in:a", "steps-in:boom", "elsewhere:b", "steps-in:quiet c"])
        await eventually(lambda: _has(copied, "A!\nquiet c\n"), what="the good ones are written")
        letters = await _read(bootstrap, "steps-letters", 2)
        headers = [dict(letter.headers() or ()) for letter in letters]
        assert [entry["__connect.errors.stage"] for entry in headers] == [b"TRANSFORMATION", b"VALUE_CONVERTER"]
        classes_at_fault = [b"acme.ShoutTransform", b"acme.ReversedConverter"]
        assert [entry["__connect.errors.class.name"] for entry in headers] == classes_at_fault
        assert headers[1]["__connect.errors.exception.message"] == b"not of steps-in"
        assert "java_step_slow" in spark.log.read_text()
        assert await worker.end() == 0


async def _read(bootstrap: str, topic: str, count: int) -> list[Message]:
    actual_messages: list[Message] = []

    async def all_there() -> bool:
        actual_messages[:] = await asyncio.to_thread(messages, bootstrap, topic)
        return len(actual_messages) >= count

    await eventually(all_there, what=f"{count} records in {topic}")
    return actual_messages


def _send(bootstrap: str, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce("steps-in", value[::-1].encode(), partition=0)
    assert producer.flush(300) == 0


async def _has(file: Path, text: str) -> bool:
    return file.exists() and file.read_text() == text
