"""Debezium follows a MariaDB in a worker, with its history of schemas in Kafka.

Slot, worker and server are killed meanwhile.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.java.debezium import ends_clean, followed, in_mid_snapshot, put, streams_on
from support.java.kit import needs_java
from support.java.mariadb_rows import MariadbRows, mariadb_config
from support.java.published import MARIADB, plugin_path
from support.servers.mariadb import MISSING, MariadbServer, running_mariadb
from support.spark.service import SparkService, kill_slot_of
from support.worker.processes import WorkerProcess

pytestmark = [
    pytest.mark.component,
    pytest.mark.slow,
    needs_java(),
    pytest.mark.skipif(bool(MISSING), reason=MISSING or "MariaDB is here"),
]
ROWS = 3000
SLOW = {"max_batch_size": "100", "max_queue_size": "200", "keelman_limit_records_per_second": "600"}
FAST = {**SLOW, "keelman_limit_records_per_second": "0"}


@pytest.fixture
def server() -> Iterator[MariadbServer]:
    """Ends after the worker."""
    with running_mariadb() as started:
        yield started


async def test_snapshot_and_stream_through_kills(
    bootstrap: str, spark: SparkService, server: MariadbServer, tmp_path: Path
) -> None:
    rows = MariadbRows(server)
    rows.add(ROWS)
    before = rows.versions()
    properties = {"plugin.path": await plugin_path(MARIADB)}
    worker = WorkerProcess(tmp_path, bootstrap, "debezium-mariadb", spark.address, properties)

    try:
        await worker.start()
        await put(worker, "stock", mariadb_config(server, bootstrap, "stock", **SLOW))
        await in_mid_snapshot(bootstrap, "stock", ROWS)
        await kill_slot_of("stock", spark)
        await put(worker, "stock", mariadb_config(server, bootstrap, "stock", **FAST))
        with rows.changing(ROWS):
            await streams_on(bootstrap, "stock")
            await kill_slot_of("stock", spark)
            await streams_on(bootstrap, "stock")
            await worker.end(signal.SIGKILL)
            await worker.start()
            await streams_on(bootstrap, "stock")
            server.kill()
            server.start()
            await streams_on(bootstrap, "stock")
        rows.remove(0, 20)
        rows.add(20, first=ROWS)
        await followed(bootstrap, "stock", rows)
        await ends_clean(worker, bootstrap, "stock", rows, before)
    finally:
        await worker.kill()
