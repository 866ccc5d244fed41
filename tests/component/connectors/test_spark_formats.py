"""Data sets that Spark reads for a source: slots and the Spark service killed in the middle, every row once."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from keelman.runtime.processes.ports import free_ports
from support.connectors.data_sets import SECONDS, Scene, scene_with
from support.eventually import eventually
from support.servers.postgresql import USER, running_postgresql
from support.spark.service import SparkService, spark_service

pytestmark = [pytest.mark.component, pytest.mark.timeout(600)]  # on a busy machine each start takes a minute
FILES = 5
EACH = 4_000
TABLE_ROWS = 3_000


@pytest.fixture
def table() -> Iterator[str]:
    """A PostgreSQL with a table of numbers; its JDBC address."""
    with running_postgresql() as server:
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            rows = f"SELECT id, 'n' || id AS name FROM generate_series(0, {TABLE_ROWS - 1}) AS id"
            connection.execute(f"CREATE TABLE numbers AS {rows}")
            connection.execute("CREATE VIEW slow AS SELECT * FROM numbers WHERE pg_sleep(0.001) IS NOT NULL")
            # Otherwise a part would sleep for the rows of the others, too: conditions are evaluated in the order of
            # their costs.
            connection.execute("ALTER FUNCTION pg_sleep(double precision) COST 1000")
        yield f"jdbc:{server.url('postgres').replace(f'{USER}@', '')}?user={USER}"


@pytest.fixture
async def scene(bootstrap: str, spark: SparkService, tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene_with(bootstrap, spark, tmp_path) as started_scene:
        yield started_scene


def parquet(folder: Path) -> list[tuple[bytes, bytes]]:
    """Files of records with keys; all of them."""
    rows = [(b"%d" % n, b"row %d" % n) for n in range(FILES * EACH)]
    folder.mkdir()
    for number in range(FILES):
        mine = rows[number * EACH : (number + 1) * EACH]
        table = pa.table({"key": [k for k, _ in mine], "value": [v for _, v in mine]})
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=EACH // 2)
    return rows


@pytest.mark.slow
async def test_parquet_with_slots_and_service_killed_in_the_middle(bootstrap: str, tmp_path: Path) -> None:
    """The test has its own Spark service: the other tests share theirs."""
    rows, started = parquet(tmp_path / "data"), partial(spark_service, tmp_path / "spark", port=free_ports(1)[0])
    config = {
        "spark.path": str(tmp_path / "data"),
        "spark.slots": "2",
        "spark.conf.spark.sql.files.maxPartitionBytes": "40000",
        "keelman.limit.records.per.second": "1000",
        "keelman.commit.interval.ms": "50",
    }
    async with contextlib.AsyncExitStack() as stack:
        async with started() as spark:
            scene = await stack.enter_async_context(scene_with(bootstrap, spark, tmp_path))
            await scene.begin("parquet", **config)
            first = await scene.copying()
            spark.signal_slot(first.slot, signal.SIGKILL)
            second = await scene.copying(first)
            os.kill(spark.pid, signal.SIGKILL)
        await stack.enter_async_context(started())
        await scene.copying(first, second)
        await scene.speed_up()
        offset = await scene.done()
        assert await scene.worker.end() == 0, "it ends before its Spark service"
    assert offset["rows"] == len(rows)
    assert offset["parts"] > 2
    assert sorted(scene.copied()) == sorted(rows)


async def test_csv_as_json_text_and_again_when_it_is_time_or_forgotten(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("id,name\n" + "".join(f"{n},name {n}\n" for n in range(10)))
    config = {"spark.path": str(file), "spark.schema": "id INT, name STRING", "spark.option.header": "true"}
    await scene.begin("csv", **config, **{"key.column": "id"})
    first = await scene.done()
    assert first["rows"] == 10
    rows = [(b"%d" % n, b'{"id":%d,"name":"name %d"}' % (n, n)) for n in range(10)]
    assert scene.copied() == rows
    await scene.begin("csv", **config, **{"key.column": "id", "spark.every.ms": "1"})
    await eventually(lambda: len(scene.copied()) > len(rows), seconds=SECONDS, every=0.5, what="it is read again")
    await scene.begin("csv", **config)
    await scene.done()
    assert await scene.worker.end() == 0
    count = len(scene.copied())
    assert count % len(rows) == 0
    scene.forget()
    await scene.worker.start()
    await scene.done()
    assert scene.copied()[count:] == [(None, value) for _, value in rows]


async def test_what_spark_cannot_read_fails_the_task_and_says_why(scene: Scene, tmp_path: Path) -> None:
    await scene.begin("parquet", **{"spark.path": str(tmp_path / "none")})
    await scene.worker.reaches(scene.name, "RUNNING", "FAILED", seconds=SECONDS)
    status = (await scene.worker.ask("GET", f"/connectors/{scene.name}/status")).json()
    assert "Spark cannot read parquet" in status["tasks"][0]["trace"]
    assert "PATH_NOT_FOUND" in status["tasks"][0]["trace"]


async def test_a_python_data_source(scene: Scene, bootstrap: str) -> None:
    source = {
        "spark.python.source": "support.connectors.numbers_source:Numbers",
        "spark.option.topic": f"{scene.name}-more",
    }
    await scene.begin("numbers", **source)
    assert (await scene.done())["rows"] == 6
    assert sorted(scene.copied()) == [(b"0", b"value 0"), (b"10", b"value 0")]
    more = [(b"1", b"value 1"), (b"11", b"value 1"), (b"12", None), (b"2", None)]
    assert sorted(scene.copied(f"{scene.name}-more")) == more


async def test_a_table_by_jdbc(scene: Scene, table: str) -> None:
    """A part is one transaction, so that the order of its rows does not matter when it is interrupted."""
    config = {
        "spark.packages": "org.postgresql:postgresql:42.7.4",
        "spark.option.driver": "org.postgresql.Driver",
        "spark.option.url": table,
        "spark.option.dbtable": "slow",
        "spark.option.fetchsize": "100",
        "spark.option.partitionColumn": "id",
        "spark.option.lowerBound": "0",
        "spark.option.upperBound": str(TABLE_ROWS),
        "spark.option.numPartitions": "3",
        "key.column": "id",
        "spark.slots": "1",
    }
    await scene.begin("jdbc", **config)
    await eventually(lambda: 0 < len(scene.copied()) < TABLE_ROWS, seconds=SECONDS, what="one part is there")
    scene.spark.signal_slot((await scene.copying(records=False)).slot, signal.SIGKILL)
    offset = await scene.done()
    assert (offset["rows"], offset["parts"]) == (TABLE_ROWS, 3)
    assert sorted(scene.copied()) == sorted((b"%d" % n, b'{"id":%d,"name":"n%d"}' % (n, n)) for n in range(TABLE_ROWS))
