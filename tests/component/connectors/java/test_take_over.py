"""A cluster of Apache Kafka Connect with Debezium and a JDBC sink is taken over by ours, and goes back."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.eventually import eventually
from support.java.debezium import (
    RestWorker,
    changes,
    copied,
    followed,
    put,
    running,
    sink_config,
    source_config,
    topic_of,
)
from support.java.kit import needs_java
from support.java.numbered_rows import NumberedRows
from support.java.published import JDBC, POSTGRES, plugin_path
from support.servers.connect_worker import ConnectProcess
from support.servers.postgresql import BINARIES, PostgresqlServer, running_postgresql
from support.spark.service import SparkService
from support.worker.processes import WorkerProcess

pytestmark = [
    pytest.mark.component,
    needs_java(),
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed"),
]
ROWS = 2000
REST_SECONDS = 0.05
"""Between changes of ten rows: starts take long, and each change is copied three times and read again and again."""
GROUP = "java-take-over"


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    """Ends after the workers."""
    with running_postgresql() as started:
        yield started


@pytest.mark.slow
async def test_debezium_and_a_jdbc_sink_go_over_to_us_and_back(
    bootstrap: str, spark: SparkService, server: PostgresqlServer, tmp_path: Path
) -> None:
    rows, target = NumberedRows(server.database()), server.database()
    rows.add(ROWS)
    before = rows.versions()
    extra = {"plugin.path": await plugin_path(POSTGRES, JDBC), "exactly.once.source.support": "enabled"}
    # Without a scan of all jars, which takes longer than the rest of its start.
    java = ConnectProcess(tmp_path / "java", bootstrap, GROUP, {**extra, "plugin.discovery": "service_load"})
    ours = WorkerProcess(tmp_path / "ours", bootstrap, GROUP, spark.address, extra)

    async def goes_on(worker: RestWorker) -> None:
        """Changes are copied to the target while both connectors run."""
        await running(worker, "orders")
        await running(worker, "warehouse")
        rows.change(0, ROWS // 2)
        rows.remove([removed.pop()])
        await followed(bootstrap, "orders", rows)
        await eventually(lambda: copied(target) == rows.versions(), every=0.5, what="all is in the target")

    removed = [30, 20, 10]
    try:
        await java.start()
        await put(java, "orders", source_config(rows, "orders"))
        await put(java, "warehouse", sink_config(target, topic_of("orders")))
        with rows.changing(ROWS, rest=REST_SECONDS):
            await running(java, "orders")
        await goes_on(java)
        with rows.changing(ROWS, rest=REST_SECONDS):
            await java.end()
            await ours.start()
        await goes_on(ours)
        with rows.changing(ROWS, rest=REST_SECONDS):
            assert await ours.end() == 0
            await java.start()
        await goes_on(java)
        report = rows.judged(await changes(bootstrap, "orders"), before)
        assert report.clean, report
        assert (report.snapshots, report.repeated) == (1, 0), report
    finally:
        for worker in (ours, java):
            with contextlib.suppress(AssertionError):
                await worker.end(signal.SIGKILL)
