"""Java connectors with Python converters: the values that cross between Java and Python, and Avro in topics."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from keelman.connect.avro.converter import AvroConverter
from keelman.connect.records import Column
from keelman.connect.schema import STRING
from keelman.engine.records.registries import open_registry
from support.copying.harness import latest
from support.java.kit import compiled, needs_java
from support.java.shared_host import hosted_java
from support.kafka.topics import create_topic, messages
from support.places import with_tests
from support.servers.registry import RegistryProcess
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]


def test_all_that_connects_data_may_be_crosses_and_comes_back() -> None:
    command = [sys.executable, "-m", "support.java.data"]
    printed = subprocess.run(command, check=True, capture_output=True, timeout=300, env=with_tests()).stdout
    tree = json.loads(printed.splitlines()[-1])
    assert {what: is_so for what, is_so in tree.items() if is_so is not True} == {}


async def test_a_java_source_writes_avro_and_its_bad_record_has_its_stage(
    bootstrap: str, registry: RegistryProcess, name: str, tmp_path: Path
) -> None:
    classes = await compiled(tmp_path / "classes")
    letters, log = f"{name}-letters", tmp_path / "log"
    create_topic(bootstrap, name)
    create_topic(bootstrap, letters)
    config = {
        "name": name,
        "connector.class": "acme.ScriptedSource",
        "task.class": "acme.ScriptedSource$ScriptedTask",
        "classes": str(classes),
        "log": str(tmp_path / "calls"),
        "topics": name,
        "records": "30",
        "bad": "13",
        "key.converter": "AvroConverter",
        "key.converter.schema.registry.url": registry.url,
        "value.converter": AvroConverter.name,
        "value.converter.schema.registry.url": registry.url,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with hosted_java(bootstrap, config, log) as process:

        def done() -> bool:
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            return bool(latest(log).get("records", 0) >= 29)

        until(done, name)
        process.terminate()
        assert process.wait(60) == 0
    actual_messages = messages(bootstrap, name)
    assert read(registry, "value", name, [actual_message.value() for actual_message in actual_messages]) == [
        f"v{n}" for n in range(30) if n != 13
    ]
    assert read(registry, "key", name, [actual_message.key() for actual_message in actual_messages]) == [
        f"k{n}" for n in range(30) if n != 13
    ]
    (letter,) = messages(bootstrap, letters)
    headers = {key: (value or b"").decode() for key, value in letter.headers() or ()}
    assert headers["__connect.errors.stage"] == "VALUE_CONVERTER"
    assert headers["__connect.errors.class.name"] == AvroConverter.name
    assert "java.lang.Integer" in headers["__connect.errors.exception.message"]
    assert log.read_text(errors="replace").count("java_converter_slow") == 2


async def test_a_java_sink_reads_avro_and_its_bad_record_has_its_stage(
    bootstrap: str, registry: RegistryProcess, name: str, tmp_path: Path
) -> None:
    classes, calls = await compiled(tmp_path / "classes"), tmp_path / "calls"
    letters, log = f"{name}-letters", tmp_path / "log"
    create_topic(bootstrap, name)
    converter = AvroConverter({"schema.registry.url": registry.url, "converter.type": "value"})
    converter.bind(open_registry)
    payloads = converter.of_topic(name).from_connect(Column(["v0", "v1"], STRING))
    producer = Producer({"bootstrap.servers": bootstrap})
    for payload in (payloads[0], b"no avro", payloads[1]):
        producer.produce(name, payload, key="k")
    assert producer.flush(300) == 0
    config = {
        "name": name,
        "connector.class": "acme.ScriptedSink",
        "task.class": "acme.ScriptedSink$ScriptedTask",
        "classes": str(classes),
        "log": str(calls),
        "topics": name,
        "value.converter": AvroConverter.name,
        "value.converter.schema.registry.url": registry.url,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }

    def put() -> list[str]:
        lines = calls.read_text().splitlines() if calls.exists() else []
        return [line.split(" ")[5] for line in lines if line.startswith("record ")]

    with hosted_java(bootstrap, config, log) as process:

        def done() -> bool:
            assert process.poll() is None, log.read_text(errors="replace")[-3000:]
            return put() == ["v0", "v1"]

        until(done, name)
        process.terminate()
        assert process.wait(60) == 0
    (letter,) = messages(bootstrap, letters)
    headers = {key: (value or b"").decode() for key, value in letter.headers() or ()}
    assert letter.value() == b"no avro"
    assert headers["__connect.errors.stage"] == "VALUE_CONVERTER"
    assert headers["__connect.errors.class.name"] == AvroConverter.name


def read(registry: RegistryProcess, role: str, topic: str, payloads: list[bytes | None]) -> list[str]:
    """The values in Avro payloads."""
    converter = AvroConverter({"schema.registry.url": registry.url, "converter.type": role})
    converter.bind(open_registry)
    column = converter.of_topic(topic).to_connect(payloads)
    assert [(schema.type, schema.optional) for schema in (column.schema_of(0),) if schema] == [
        ("string", role == "key")
    ]
    return list(column.values)
