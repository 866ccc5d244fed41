"""Offsets set through REST are the positions at which a real source and a real sink continue."""

from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import NewTopic

from keelman.kafka.clients import admin_client
from support.eventually import eventually
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component
LINES = [f"line {n}\n" for n in range(10)]


async def test_tasks_go_on_where_they_are_told(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(LINES))
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
        await admin.create_topics([NewTopic("moved", 1, 1)])
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "moved", spark.address)

    def written() -> list[str]:
        return target.read_text().splitlines(keepends=True) if target.exists() else []

    async def altered(name: str, partition: dict[str, Any], offset: dict[str, Any]) -> None:
        body = {"offsets": [{"partition": partition, "offset": offset}]}
        assert (await worker.ask("PUT", f"/connectors/{name}/stop")).status_code == 204
        await worker.reaches(name, "STOPPED", seconds=300)

        async def done() -> bool:  # a sink's consumer may be about to leave
            return (await worker.ask("PATCH", f"/connectors/{name}/offsets", body)).status_code == 200

        await eventually(done)
        assert (await worker.ask("PUT", f"/connectors/{name}/resume")).status_code == 202

    async def tracked() -> bool:
        document = [
            (await worker.ask("GET", f"/connectors/{name}/topics")).json() for name in ("moved-in", "moved-out")
        ]
        return document == [{name: {"topics": ["moved"]}} for name in ("moved-in", "moved-out")]

    async with workers(worker):
        config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "moved"}
        await worker.ask("POST", "/connectors", {"name": "moved-in", "config": config})
        config = {"connector.class": "FileStreamSink", "file": str(target), "topics": "moved"}
        await worker.ask("POST", "/connectors", {"name": "moved-out", "config": config})
        await eventually(lambda: written() == LINES, what="all lines")
        await eventually(tracked, what="both tell the topic that they use")
        await altered("moved-in", {"filename": str(source)}, {"position": len("".join(LINES[:7]))})
        await eventually(lambda: written() == LINES + LINES[7:], what="the last three lines again")
        await altered("moved-out", {"kafka_topic": "moved", "kafka_partition": 0}, {"kafka_offset": "10"})
        # A sink that keeps its offsets beside its file follows its group's new offset, and appends to the present
        # lines.
        await eventually(lambda: written()[13:] == LINES[7:], what="the offsets that the sink was moved back to")
