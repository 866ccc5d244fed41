"""A virtual machine whose start takes longer than a slot may be silent: the slot announces it, and is not given up."""

import asyncio
from pathlib import Path

import pytest

from support.eventually import eventually
from support.java.kit import needs_java, packed
from support.kafka.topics import create_topic
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java()]
SECONDS = 12
"""Two more than the time for which a loop may be silent, and seven more than the timeout between slot and service."""


ALONE, BESIDE = "alone", "beside a connector of ours"


async def test_a_machine_that_starts_slowly_is_waited_for(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str
) -> None:
    plugins = await packed(tmp_path, manifest="Premain-Class: acme.SlowMachine\n")
    extra = {
        "plugin.path": str(plugins),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.options": f"-javaagent:{plugins / 'acme' / 'acme.jar'}={SECONDS}",
    }
    worker = WorkerProcess(tmp_path / "worker", bootstrap, name, spark.address, extra)
    path = tmp_path / "given"
    path.write_text("one\ntwo\n")
    topics = {ALONE: f"{name}-alone", BESIDE: f"{name}-beside"}
    configs = {
        ALONE: {"connector.class": "acme.ScriptedSource", "topics": topics[ALONE], "log": str(tmp_path / "calls")},
        BESIDE: {
            "connector.class": "FileStreamSource",
            "topic": topics[BESIDE],
            "file": str(path),
            "transforms": "shout",
            "transforms.shout.type": "acme.ShoutTransform",
            "transforms.shout.end": "!",
        },
    }

    async def listed() -> bool:
        response = (await worker.ask("GET", "/connector-plugins?connectorsOnly=false")).json()
        return "acme.ShoutTransform" in {entry["class"] for entry in response}

    async def copies(where: str, offset: int) -> None:
        topic = topics[where]
        create_topic(bootstrap, topic)
        response = await worker.ask("POST", "/connectors", {"name": topic, "config": configs[where]}, timeout=300)
        assert response.status_code == 201, response.text

        async def committed() -> bool:
            rows = (await worker.ask("GET", f"/connectors/{topic}/offsets")).json()["offsets"]
            return [next(iter(row["offset"].values())) for row in rows] == [offset]

        await eventually(committed, what=f"all records of {topic} are committed")

    async with workers(worker):
        await eventually(listed, what="the plugin is listed")
        await asyncio.gather(copies(ALONE, 99), copies(BESIDE, 8))
        lost = [line for line in spark.log.read_text().splitlines() if "slot_lost" in line]
        assert not [line for line in lost if f"worker={worker.id} " in line]
        assert await worker.end() == 0
