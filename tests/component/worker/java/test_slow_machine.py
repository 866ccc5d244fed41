"""A virtual machine that starts for longer than a slot may be silent: the slot announces it, and is not given up."""

from pathlib import Path

import pytest

from keelman.testing.eventually import eventually
from support.java.kit import needs_java, packed
from support.kafka.topics import create_topic
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = [pytest.mark.component, needs_java(), pytest.mark.timeout(600)]
SECONDS = 7
"""Two more than slot and service give each other up after."""


async def test_a_machine_that_starts_slowly_is_waited_for(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    plugins = await packed(tmp_path, manifest="Premain-Class: acme.SlowMachine\n")
    create_topic(bootstrap, "slow-machine")
    extra = {
        "plugin.path": str(plugins),
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "keelman.plugin.jvm.options": f"-javaagent:{plugins / 'acme' / 'acme.jar'}={SECONDS}",
    }
    config = {
        "connector.class": "acme.ScriptedSource",
        "topics": "slow-machine",
        "log": str(tmp_path / "calls"),
    }
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "slowmachine", spark.address, extra)
    async with workers(worker):
        made = await worker.ask("POST", "/connectors", {"name": "slow", "config": config}, timeout=120)
        assert made.status_code == 201, made.text

        async def committed() -> bool:
            rows = (await worker.ask("GET", "/connectors/slow/offsets")).json()["offsets"]
            return [row["offset"]["n"] for row in rows] == [99]

        await eventually(committed, seconds=120, what="all records are committed")
        lost = [line for line in spark.log.read_text().splitlines() if "slot_lost" in line]
        assert not [line for line in lost if f"worker={worker.id} " in line]
        assert (tmp_path / "calls").read_text().count("start ") == 1
        assert await worker.end() == 0
