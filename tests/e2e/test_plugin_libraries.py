"""A Java plugin finds the classes of its worker cluster's shared library, and recovers when the library changes."""

from __future__ import annotations

import asyncio
import zipfile
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from support.cli.system import STRING, Keelman
from support.eventually import eventually
from support.java.kit import compiled, needs_java

pytestmark = [pytest.mark.e2e, pytest.mark.slow, needs_java()]
LIBRARY = "Missing.class"
CONFIG = {
    "connector.class": "acme.BadSource",
    "does": "missing",
    "topic": "unused",
    "value.converter": STRING,
    "keelman.limit.records.per.second": "20",
    "topic.creation.default.partitions": "1",
    "topic.creation.default.replication.factor": "1",
}


def end_of(servers: str, topic: str) -> int:
    """The number of records in the topic, with markers of transactions; 0 while it does not exist."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "look"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=300)[1])
    except KafkaException:
        return 0
    finally:
        consumer.close()


async def test_a_java_plugin_finds_its_worker_clusters_library(own: Keelman, tmp_path: Path) -> None:
    classes = await compiled(tmp_path / "classes")
    for name in ("acme", "missing"):
        with zipfile.ZipFile(tmp_path / f"{name}.jar", "w") as archive:
            for file in sorted(classes.rglob("*.class")):
                if (file.name == LIBRARY) is (name == "missing"):
                    archive.write(file, file.relative_to(classes))
    await own.ok("up", "--detach", "--free-ports")
    for name in ("acme", "missing"):
        await own.ok("create", "plugin", str(tmp_path / f"{name}.jar"), "--name", name, "--version", "1")
    await own.ok(
        "create", "wc", "waters", "--plugin", "acme", "--library", "missing", "--count", "1", "--start", "--wait"
    )
    spec = (await own.item("wc", "waters"))["spec"]
    assert [library["name"] for library in spec["libraries"]] == ["missing"]
    servers = (await own.item("bc", "default"))["status"]["bootstrap_servers"]
    settings = [word for key, value in CONFIG.items() for word in ("--set", f"{key}={value}")]
    await own.ok("create", "connector", "waters/finds", *settings, "--wait")

    async def written() -> int:
        return await asyncio.to_thread(end_of, servers, "x")

    await eventually(written, what="records go to the topic that the library's class names")
    refused = await own.run("delete", "plugin", "missing:1")
    assert (refused.code != 0, "waters" in refused.err) == (True, True), refused

    # Without the library the class is missing again: the task names it.
    await own.ok("update", "wc", "waters", "--remove-library", "missing", "--wait")

    async def missed() -> bool:
        return "java.lang.NoClassDefFoundError: acme/Missing" in await own.ok("get", "cn", "waters/finds", "-o", "json")

    await eventually(missed, what="its task names the missing part")
