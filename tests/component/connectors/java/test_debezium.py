"""Debezium follows a PostgreSQL in a worker: its snapshot and its stream, while slot, worker and server are killed.

Its sink writes to one, too. The tests distinguish Debezium's own repetitions from duplicates: a snapshot that did not
come to its end is begun again, with rows that are there already.
"""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.eventually import eventually
from support.java.debezium import (
    copied,
    ends_clean,
    followed,
    in_mid_snapshot,
    put,
    sink_config,
    slot_of,
    source_config,
    streams_on,
)
from support.java.kit import needs_java
from support.java.numbered_rows import NumberedRows, confirmed, written_lsn
from support.java.published import JDBC, POSTGRES, plugin_path
from support.java.shared_host import HostedRun, hosted_java
from support.kafka.topics import create_topic
from support.servers.postgresql import BINARIES, PostgresqlServer, running_postgresql
from support.spark.service import SparkService, kill_slot_of
from support.waiting import until
from support.worker.processes import WorkerProcess

pytestmark = [
    pytest.mark.component,
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
    """One server for all tests of this file."""
    with running_postgresql() as started:
        yield started


async def worker_of(folder: Path, bootstrap: str, group: str, spark: SparkService) -> WorkerProcess:
    """A worker with both of Debezium's plugins, not started yet."""
    return WorkerProcess(folder, bootstrap, group, spark.address, {"plugin.path": await plugin_path(POSTGRES, JDBC)})


@pytest.mark.slow
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
            await in_mid_snapshot(bootstrap, "inventory", ROWS)
            await kill_slot_of("inventory", spark)
            await in_mid_snapshot(bootstrap, "inventory", ROWS, begun=2)
            await worker.end(signal.SIGKILL)
            await worker.start()
            await in_mid_snapshot(bootstrap, "inventory", ROWS, begun=3)
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
        await eventually(lambda: confirmed(rows, slot_of("inventory"), lsn), what="the log is let go")
        await ends_clean(worker, bootstrap, "inventory", rows, before)
    finally:
        await worker.kill()


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
        await in_mid_snapshot(bootstrap, "ledger", ROWS)
        server.kill()
        server.start()
        await put(worker, "ledger", source_config(rows, "ledger", **FAST))
        with rows.changing(ROWS):
            await streams_on(bootstrap, "ledger")
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await streams_on(bootstrap, "ledger")
        await followed(bootstrap, "ledger", rows)
        await ends_clean(worker, bootstrap, "ledger", rows, before)
    finally:
        await worker.kill()


async def test_a_jdbc_sink_upserts_exact_rows_through_a_kill_of_its_slot(
    bootstrap: str, name: str, server: PostgresqlServer, tmp_path: Path
) -> None:
    target, log = server.database(), tmp_path / "log"
    expected: dict[int, int] = {}
    create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap})
    for n in range(400):
        row = {"id": n % 80, "version": n}
        expected[row["id"]] = n
        producer.produce(name, key=with_schema({"id": row["id"]}), value=with_schema(row), partition=0)
    assert producer.flush(300) == 0
    config = {
        **sink_config(target, name, consumer_override_max_poll_records="10"),
        "name": name,
        "task.class": "io.debezium.connector.jdbc.JdbcSinkConnectorTask",
        "classes": str(await JDBC.path() / JDBC.name),
    }

    def written(process: HostedRun) -> dict[int, int]:
        assert process.poll() is None, log.read_text(errors="replace")[-3000:]
        return copied(target)

    with hosted_java(bootstrap, config, log) as process:
        first = until(lambda: written(process), "the first rows are there", every=0.05)
        process.kill()
    assert first != expected, "all was written before the kill"
    with hosted_java(bootstrap, config, log) as process:
        until(lambda: written(process) == expected, "all rows are there in their last version", every=0.2)
        process.terminate()
        assert process.wait(60) == 0
    assert copied(target) == expected


def with_schema(row: dict[str, int]) -> bytes:
    """A row of numbers as JsonConverter reads it."""
    fields = [{"type": "int32", "optional": False, "field": name} for name in row]
    return json.dumps({"schema": {"type": "struct", "fields": fields, "optional": False}, "payload": row}).encode()
