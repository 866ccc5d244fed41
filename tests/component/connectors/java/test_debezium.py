"""Debezium follows a PostgreSQL in a worker: its snapshot and its stream, while slot, worker and server are killed.

What Debezium itself repeats is told apart from what is doubled: a snapshot that did not come to its end is begun again,
with rows that are there already.
"""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.rpc.channels import channel
from keelman.testing.eventually import eventually
from keelman.testing.postgresql import BINARIES, PostgresqlServer, running_postgresql
from support.debezium_kit import changes, followed, put, running, slot_of, source_config
from support.java_kit import needs_java
from support.java_plugins import JDBC, POSTGRES, plugin_path
from support.numbered_rows import NumberedRows, confirmed, written_lsn
from support.spark_kit import SparkService
from support.worker_kit import WorkerProcess

pytestmark = [
    pytest.mark.component,
    pytest.mark.timeout(600),
    needs_java(),
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed"),
]
ROWS = 5000
SLOW = {
    "max_batch_size": "100",
    "max_queue_size": "200",
    "snapshot_fetch_size": "100",
    "keelman_limit_records_per_second": "800",
}
FAST = {**SLOW, "keelman_limit_records_per_second": "0"}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    """One for all tests of this file."""
    with running_postgresql() as started:
        yield started


async def worker_of(folder: Path, bootstrap: str, group: str, spark: SparkService) -> WorkerProcess:
    """A worker with both of Debezium's plugins, not started yet."""
    return WorkerProcess(folder, bootstrap, group, spark.address, {"plugin.path": await plugin_path(POSTGRES, JDBC)})


async def kill_slot_of(name: str, spark: SparkService) -> None:
    """kill -9 of the process in which the connector's task copies."""

    async def slot() -> str:
        async with channel(spark.address) as opened:
            told = await CopyRunServiceStub(opened).ListCopyRuns(ListCopyRunsRequest(connector=name))
        return next((run.slot for run in told.copy_runs if run.slot), "")

    spark.signal_slot(await eventually(slot, seconds=60, what=f"{name} copies in a slot"), signal.SIGKILL)


async def in_mid_snapshot(bootstrap: str, name: str) -> None:
    """Waits until a part of the rows is there, and only a part."""

    async def some() -> int:
        return sum(one.op == "r" for one in await changes(bootstrap, name))

    there = await eventually(some, seconds=120, what=f"the snapshot of {name} has begun")
    assert there < ROWS, "the snapshot was at its end already"


async def streams_on(bootstrap: str, name: str) -> None:
    """Waits until more changes are there than now: the snapshot is at its end, and the stream goes on."""

    async def streamed() -> int:
        return sum(one.op == "u" for one in await changes(bootstrap, name))

    before = await streamed()

    async def more() -> bool:
        return await streamed() > before + 50

    await eventually(more, seconds=120, every=0.2, what=f"{name} streams changes")


async def test_snapshot_and_stream_through_kills_of_slots_and_workers(
    bootstrap: str, spark: SparkService, server: PostgresqlServer, tmp_path: Path
) -> None:
    rows = NumberedRows(server.database())
    rows.add(ROWS)
    before = rows.versions()
    worker = await worker_of(tmp_path, bootstrap, "debezium-slots", spark)
    try:
        await worker.start()
        await put(worker, "inventory", source_config(rows, "inventory", **SLOW))
        with rows.changing(ROWS):
            await in_mid_snapshot(bootstrap, "inventory")
            await kill_slot_of("inventory", spark)
            await put(worker, "inventory", source_config(rows, "inventory", **FAST))
            await streams_on(bootstrap, "inventory")
            lsn = written_lsn(rows)
            await kill_slot_of("inventory", spark)
            await streams_on(bootstrap, "inventory")
            await worker.end(signal.SIGKILL)
            await worker.start()
            await streams_on(bootstrap, "inventory")
        rows.remove(range(20))
        rows.add(20, first=ROWS)
        await followed(bootstrap, "inventory", rows)
        await eventually(lambda: confirmed(rows, slot_of("inventory"), lsn), seconds=60, what="the log is let go")
        await running(worker, "inventory")
        assert await worker.end() == 0
        report = rows.judged(await changes(bootstrap, "inventory"), before)
        assert report.clean, report
        assert report.snapshots > 1, f"no kill came in mid-snapshot: {report}"
    finally:
        await _gone(worker)


async def test_snapshot_and_stream_through_kills_of_postgresql(
    bootstrap: str, spark: SparkService, server: PostgresqlServer, tmp_path: Path
) -> None:
    rows = NumberedRows(server.database())
    rows.add(ROWS)
    before = rows.versions()
    worker = await worker_of(tmp_path, bootstrap, "debezium-server", spark)
    try:
        await worker.start()
        await put(worker, "ledger", source_config(rows, "ledger", **SLOW))
        await in_mid_snapshot(bootstrap, "ledger")
        server.kill()
        server.start()
        await put(worker, "ledger", source_config(rows, "ledger", **FAST))
        with rows.changing(ROWS):
            await streams_on(bootstrap, "ledger")
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await streams_on(bootstrap, "ledger")
        await followed(bootstrap, "ledger", rows)
        await running(worker, "ledger")
        assert await worker.end() == 0
        report = rows.judged(await changes(bootstrap, "ledger"), before)
        assert report.clean, report
        assert report.snapshots > 1, f"no kill came in mid-snapshot: {report}"
    finally:
        await _gone(worker)


async def _gone(worker: WorkerProcess) -> None:
    if worker.child is not None and worker.child.returncode is None:
        await worker.end(signal.SIGKILL)
