"""A worker with the real Spark service and the real file connectors: killed in the middle, nothing lost or doubled."""

import signal
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import NewTopic

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.kafka.clients import admin_client
from keelman.rpc.channels import channel
from keelman.runtime.logs.filter import ConnectorLines
from support.eventually import eventually
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component
LINES = 200_000


async def test_a_file_arrives_whole_though_its_worker_is_killed(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"line {n}\n" for n in range(LINES)))
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
        await admin.create_topics([NewTopic("copied", 1, 1)])
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "copy", spark.address)
    async with workers(worker):
        config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "copied", "batch.size": "100"}
        await worker.ask("POST", "/connectors", {"name": "copy-in", "config": config})
        config = {"connector.class": "FileStreamSink", "file": str(target), "topics": "copied"}
        await worker.ask("POST", "/connectors", {"name": "copy-out", "config": config})
        await eventually(lambda: target.exists() and target.stat().st_size > 0, what="the first lines")
        await worker.end(signal.SIGKILL)
        await worker.start()
        with source.open("a") as more:
            more.write("the last line\n")
        whole = source.read_bytes()
        await eventually(lambda: target.stat().st_size >= len(whole), what="all lines")
        assert target.read_bytes() == whole
        await worker.reaches("copy-in", "RUNNING", "RUNNING")
        (row,) = (await worker.ask("GET", "/connectors/copy-in/offsets")).json()["offsets"]
        assert (row["partition"], row["offset"]["position"]) == ({"filename": str(source)}, len(whole))

        async def committed() -> Any:  # the group's offset is committed after the file
            return (await worker.ask("GET", "/connectors/copy-out/offsets")).json()["offsets"]

        rows = await eventually(committed, what="the sink's group has an offset")
        assert rows[0]["partition"] == {"kafka_topic": "copied", "kafka_partition": 0}
        assert await worker.end() == 0


async def test_lines_about_connectors_of_one_name_are_told_apart(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    """Two worker clusters share one Spark service: its log has its own lines and those of the slots."""
    groups = ("lines-a", "lines-b")
    worker_processes = [WorkerProcess(tmp_path / group, bootstrap, group, spark.address) for group in groups]

    def lines(group: str) -> str:
        return ConnectorLines("lines", group).kept(spark.log.read_bytes().splitlines(keepends=True)).decode()

    async with workers(*worker_processes):
        for worker in worker_processes:
            missing = str(tmp_path / f"{worker.group}-missing")
            config = {"connector.class": "FileStreamSource", "file": missing, "topic": worker.group}
            await worker.ask("POST", "/connectors", {"name": "lines", "config": config})
        for group, other in (groups, groups[::-1]):
            await eventually(lambda g=group: "file_missing" in lines(g), what="the slot tells of the file")
            assert f"{other}-missing" not in lines(group)
        await worker_processes[0].ask("DELETE", "/connectors/lines")
        await eventually(lambda: "copy_run_ended" in lines(groups[0]), what="the service tells of the end")
        assert "copy_run_ended" not in lines(groups[1])


async def test_what_a_task_waits_for_is_shown_until_it_is_there(
    bootstrap: str, spark: SparkService, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "awaits", spark.address)
    async with workers(worker):

        async def waits_for(name: str) -> str:
            task = (await worker.ask("GET", f"/connectors/{name}/status")).json()["tasks"][0]
            assert task["state"] == "RUNNING"
            return str(task.get("keelman", {}).get("waits_for", ""))

        async def both_wait() -> bool:
            reasons = (await waits_for("awaits-in"), await waits_for("awaits-out"))
            return reasons == (f"waits for the file {source}", "waits for the topic awaited")

        async def both_copy() -> bool:
            return (await waits_for("awaits-in"), await waits_for("awaits-out")) == ("", "")

        config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "awaited"}
        await worker.ask("POST", "/connectors", {"name": "awaits-in", "config": config})
        config = {"connector.class": "FileStreamSink", "file": str(target), "topics": "awaited"}
        await worker.ask("POST", "/connectors", {"name": "awaits-out", "config": config})
        await eventually(both_wait, what="both have the reason of their wait")
        source.write_text("line 0\n")
        await eventually(lambda: target.exists() and target.read_text() == "line 0\n", what="the line is copied")
        await eventually(both_copy, what="nothing is waited for any more")
        assert await worker.end() == 0


async def test_idle_tasks_leave_their_slots_and_come_back(bootstrap: str, spark: SparkService, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    async with admin_client({"bootstrap.servers": bootstrap}, client_id="test") as admin:
        await admin.create_topics([NewTopic("parked", 1, 1)])
    worker = WorkerProcess(tmp_path / "worker", bootstrap, "park", spark.address, {"keelman.park.after.ms": "300"})
    async with workers(worker), channel(spark.address) as opened:
        runs = CopyRunServiceStub(opened)

        async def parked() -> bool:
            listed = await runs.ListCopyRuns(ListCopyRunsRequest(worker_cluster="park"))
            return not listed.copy_runs and target.exists() and target.read_bytes() == source.read_bytes()

        def said_in_its_slot() -> bytes:
            lines = spark.log.read_bytes().splitlines(keepends=True)
            return ConnectorLines("park-in").kept(lines)

        config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "parked"}
        await worker.ask("POST", "/connectors", {"name": "park-in", "config": config})
        await eventually(lambda: b"file_missing" in said_in_its_slot(), what="the slot's line names it")
        source.write_text("line 0\n")
        config = {"connector.class": "FileStreamSink", "file": str(target), "topics": "parked"}
        await worker.ask("POST", "/connectors", {"name": "park-out", "config": config})
        for number in range(1, 4):
            await eventually(parked, what="all is copied and nothing runs")
            for name in ("park-in", "park-out"):
                await worker.reaches(name, "RUNNING", "RUNNING")
            with source.open("a") as more:
                more.write(f"line {number}\n")
        await eventually(parked, what="all is copied and nothing runs")
        ended = await runs.ListCopyRuns(ListCopyRunsRequest(worker_cluster="park", include_ended=True))
        assert {run.reason for run in ended.copy_runs} == {"PARKED"}
        assert {run.message for run in ended.copy_runs} == {"waits outside a slot for more to copy"}
        assert await worker.end() == 0
