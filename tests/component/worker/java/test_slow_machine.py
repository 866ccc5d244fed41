"""A virtual machine that starts for longer than a slot may be silent: the slot announces it, and is not given up."""

from pathlib import Path

import pytest

from keelman.testing.eventually import eventually
from support.java.kit import needs_java, packed
from support.kafka.topics import create_topic
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java(), pytest.mark.timeout(600)]
SECONDS = 12
"""Two more than a loop may be silent for, and seven more than slot and service give each other up after."""


@pytest.mark.parametrize("beside", ["alone", "beside a connector of ours"])
async def test_a_machine_that_starts_slowly_is_waited_for(
    bootstrap: str, spark: SparkService, tmp_path: Path, name: str, beside: str
) -> None:
    plugins = await packed(tmp_path, manifest="Premain-Class: acme.SlowMachine\n")
    create_topic(bootstrap, name)
    extra = {
        "plugin.path": str(plugins),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.options": f"-javaagent:{plugins / 'acme' / 'acme.jar'}={SECONDS}",
    }
    given = tmp_path / "given"
    given.write_text("one\ntwo\n")
    config = {
        "alone": {"connector.class": "acme.ScriptedSource", "topics": name, "log": str(tmp_path / "calls")},
        "beside a connector of ours": {
            "connector.class": "FileStreamSource",
            "topic": name,
            "file": str(given),
            "transforms": "shout",
            "transforms.shout.type": "acme.ShoutTransform",
            "transforms.shout.end": "!",
        },
    }[beside]
    worker = WorkerProcess(tmp_path / "worker", bootstrap, name, spark.address, extra)

    async def listed() -> bool:
        found = (await worker.ask("GET", "/connector-plugins?connectorsOnly=false")).json()
        return "acme.ShoutTransform" in {one["class"] for one in found}

    async with workers(worker):
        await eventually(listed, seconds=120, what="the plugin is listed")
        made = await worker.ask("POST", "/connectors", {"name": name, "config": config}, timeout=120)
        assert made.status_code == 201, made.text

        async def committed() -> bool:
            rows = (await worker.ask("GET", f"/connectors/{name}/offsets")).json()["offsets"]
            return [next(iter(row["offset"].values())) for row in rows] == [99 if beside == "alone" else 8]

        await eventually(committed, seconds=60, what="all records are committed")
        lost = [line for line in spark.log.read_text().splitlines() if "slot_lost" in line]
        assert not [line for line in lost if f"worker={worker.id} " in line]
        assert await worker.end() == 0
