"""Java plugins side by side on one worker.

Versions and ranges of them, jars with Kafka's own classes, sinks that park, tasks that are deaf, and tasks that start
processes of their own.
"""

import asyncio
import zipfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.java.kit import compiled, needs_java
from support.kafka.topics import create_topic
from support.plugins.jar_files import class_bytes
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
SOURCE, SINK = "acme.BadSource", "acme.ScriptedSink"
GROUP = "javafolders"
SLEEP = "98765"
KAFKAS_OWN = ("org/apache/kafka/common/TopicPartition", "org/apache/kafka/connect/source/SourceRecord")


async def plugin_path(folder: Path) -> Path:
    """A plugin path with the kit's classes in two versions, both with a broken copy of some of Kafka's classes."""
    classes = await compiled(folder / "classes")
    for version in (b"1", b"2"):
        jar = folder / "plugins" / f"acme-{version.decode()}" / "acme.jar"
        jar.parent.mkdir(parents=True)
        with zipfile.ZipFile(jar, "w") as archive:
            for file in sorted(classes.rglob("*.class")):
                data = file.read_bytes()
                if file.stem in ("BadSource", "ScriptedSink"):
                    # The constant that version() returns.
                    assert data.count(b"\x01\x00\x011") == 1
                    data = data.replace(b"\x01\x00\x011", b"\x01\x00\x01" + version)
                archive.writestr(str(file.relative_to(classes)), data)
            for name in KAFKAS_OWN:
                archive.writestr(f"{name}.class", class_bytes(name))
    return folder / "plugins"


def sleepers() -> list[psutil.Process]:
    """The processes that a plugin has started."""
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if process.info["cmdline"] == ["sleep", SLEEP]]


async def test_versions_own_kafka_classes_parking_deaf_puts_and_forks(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    extra = {
        "plugin.path": str(await plugin_path(tmp_path)),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.heap.bytes": str(64 << 20),
        "task.shutdown.graceful.timeout.ms": "1000",
        "offset.flush.interval.ms": "500",
    }
    for topic in ("folders-a", "folders-b"):
        create_topic(bootstrap, topic)
    worker = WorkerProcess(tmp_path / "worker", bootstrap, GROUP, spark.address, extra)
    calls = tmp_path / "calls"
    sink = {"connector.class": SINK, "topics": "folders-b", "log": str(calls)}

    async def put(name: str, **config: str) -> Any:
        return await worker.ask("PUT", f"/connectors/{name}/config", config, timeout=300)

    def send(value: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap})
        producer.produce("folders-b", value.encode(), key=b"k")
        assert producer.flush(300) == 0

    async with workers(worker), channel(spark.address) as opened:
        runs = CopyRunServiceStub(opened)

        async def copies(name: str) -> bool:
            listed = await runs.ListCopyRuns(ListCopyRunsRequest(worker_cluster=GROUP))
            return name in {run.connector for run in listed.copy_runs}

        async def rests(name: str) -> bool:
            return not await copies(name)

        async def both_listed() -> bool:
            response = (await worker.ask("GET", "/connector-plugins")).json()
            assert {entry["version"] for entry in response if entry["class"] == SOURCE} == {"1", "2"}, worker.output[
                -3000:
            ]
            return True

        await eventually(both_listed, what="both versions are listed")
        # It takes some time until these two slots are found silent: the rest runs beside it.
        deaf = tmp_path / "deaf"
        await asyncio.to_thread(send, "v0")
        assert (await put("deaf", **{**sink, "log": str(deaf), "deaf.at": "1"})).status_code == 201
        source = {"connector.class": SOURCE, "topic": "folders-a"}
        assert (await put("mute", **source, does="deaf")).status_code == 201
        await eventually(lambda: "deaf" in _calls(deaf), what="its put does not come back")
        await eventually(lambda: "acme is deaf" in spark.log.read_text(), what="its poll does not come back")
        for name in ("deaf", "mute"):
            assert (await worker.ask("DELETE", f"/connectors/{name}")).status_code == 204

        refused = await put("none", **source, **{"connector.plugin.version": "[3,4)"})
        assert refused.status_code == 400, refused.text
        assert "[3,4)" in refused.json()["message"]
        for name, more, version in (("old", {"connector.plugin.version": "[1,2)"}, "1"), ("new", {}, "2")):
            response = await put(name, **source, **more, does="forks", seconds=SLEEP)
            assert response.status_code == 201, response.text
            await worker.reaches(name, "RUNNING", "RUNNING", seconds=300)
            status = (await worker.ask("GET", f"/connectors/{name}/status")).json()
            assert status["connector"]["version"] == version
            assert status["tasks"][0]["version"] == version

        # Its processes end with its slot.
        await eventually(lambda: _are(2), what="both have begun a process")
        assert (await worker.ask("PUT", "/connectors/new/stop")).status_code == 204
        assert (await worker.ask("DELETE", "/connectors/old")).status_code == 204

        async def altered(n: int) -> Any:
            rows = [{"partition": {"p": "1"}, "offset": {"n": n}}]
            return await worker.ask("PATCH", "/connectors/new/offsets", {"offsets": rows}, timeout=300)

        async def is_altered() -> bool:
            return bool((await altered(7)).status_code == 200)

        await eventually(is_altered, what="offsets of the stopped connector are set")
        answer = await altered(-1)
        assert answer.status_code == 500, answer.text
        assert "n is below 0" in answer.json()["message"]
        rows = (await worker.ask("GET", "/connectors/new/offsets")).json()["offsets"]
        assert [row["offset"] for row in rows] == [{"n": 7}]

        # A sink parks, and comes back for a record.
        assert (await put("sunk", **sink, **{"keelman.park.after.ms": "1500"})).status_code == 201
        await eventually(lambda: _noted(calls, " v0 "), what="the first record is put")
        await eventually(lambda: rests("sunk"), what="it is parked")
        assert _calls(calls)[-1] == "stop"
        await worker.reaches("sunk", "RUNNING", "RUNNING", seconds=300)
        await asyncio.to_thread(send, "v1")
        await eventually(lambda: _noted(calls, " v1 "), what="it comes back")
        assert sum(" v0 " in line for line in _calls(calls)) == 1, "committed records are not put again"
        assert (await worker.ask("DELETE", "/connectors/sunk")).status_code == 204

        # A put and a poll that are deaf ended with their slots.
        for name in ("deaf", "mute"):
            await eventually(lambda name=name: rests(name), what=f"{name} has no copy run")  # type: ignore[misc]
        assert "interrupted" in _calls(deaf)
        for method in (f"{SINK}$ScriptedTask.put", f"{SOURCE}$BadTask.poll"):
            assert f"{method} has not come back" in spark.log.read_text()
        assert await worker.end() == 0
        # Slots that wait for the worker's next task end with it.
        await eventually(lambda: _are(0), what="the processes that plugins began have ended")


def _calls(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


async def _noted(file: Path, text: str) -> bool:
    return any(text in line for line in _calls(file))


async def _are(count: int) -> bool:
    return len(sleepers()) == count
