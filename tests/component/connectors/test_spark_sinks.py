"""Topics that Spark writes to data sets: slots and the Spark service killed in the middle, every record once."""

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer

from keelman.runtime.processes.ports import free_ports
from support.connectors.data_sets import SECONDS, Scene, scene_with
from support.eventually import eventually
from support.servers.postgresql import PostgresqlServer, running_postgresql
from support.spark.service import SparkService, spark_service

pytestmark = [pytest.mark.component, pytest.mark.timeout(600)]  # on a busy machine each start takes a minute


@pytest.fixture
def postgresql() -> Iterator[PostgresqlServer]:
    with running_postgresql() as server:
        yield server


@pytest.fixture
async def scene(bootstrap: str, spark: SparkService, tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene_with(bootstrap, spark, tmp_path) as started_scene:
        yield started_scene


def numbered(count: int) -> list[tuple[bytes | None, bytes]]:
    """Records of JSON."""
    return [(b"k", b'{"id":%d,"name":"name %d"}' % (n, n)) for n in range(count)]


SOME_AT_A_TIME = {
    "value.schema": "id INT, name STRING",
    "spark.write.every.ms": "100",
    "spark.write.max.records": "500",
}


async def test_a_topic_is_in_parquet_once_though_its_slot_is_killed(scene: Scene, tmp_path: Path) -> None:
    target, count = tmp_path / "out", 3_000
    scene.fill(numbered(count))
    await scene.begin("parquet", "SparkSink", **SOME_AT_A_TIME, **{"spark.path": str(target)})
    scene.spark.signal_slot((await scene.copying(parts=False)).slot, signal.SIGKILL)
    await scene.written(count)
    rows = pq.read_table(target).to_pylist()
    assert sorted(row["id"] for row in rows) == list(range(count))
    assert all(row["name"] == f"name {row['id']}" for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "jdbc"])
async def test_a_topic_is_written_once_though_its_spark_service_is_killed_again_and_again(
    kind: str, bootstrap: str, postgresql: PostgresqlServer, tmp_path: Path
) -> None:
    """The test has its own Spark service: the other tests share theirs."""
    started, count = partial(spark_service, tmp_path / "spark", port=free_ports(1)[0]), 20_000
    jdbc = f"jdbc:postgresql://127.0.0.1:{postgresql.port}/postgres?user=keelman"
    named = {
        "spark.option.driver": "org.postgresql.Driver",
        "spark.option.url": jdbc,
        "spark.option.dbtable": "copied",
    }
    more = {**named, "spark.packages": "org.postgresql:postgresql:42.7.4"} if kind == "jdbc" else {}
    path = {} if kind == "jdbc" else {"spark.path": str(tmp_path / "out")}
    async with contextlib.AsyncExitStack() as stack:
        async with started() as spark:
            scene = await stack.enter_async_context(scene_with(bootstrap, spark, tmp_path))
            scene.fill(numbered(count))
            await scene.begin(kind, "SparkSink", **SOME_AT_A_TIME, **more, **path)
            await scene.written(2_000)
            os.kill(spark.pid, signal.SIGKILL)
        for at in (5_000, 8_000, 11_000, 14_000):
            async with started() as spark:
                await scene.written(at)
                os.kill(spark.pid, signal.SIGKILL)
        await stack.enter_async_context(started())
        await scene.written(count)
        assert await scene.worker.end() == 0, "it ends before its Spark service"
    if kind == "parquet":
        found = [row["id"] for row in pq.read_table(tmp_path / "out").to_pylist()]
    else:
        with psycopg.connect(postgresql.url("postgres")) as connection:
            found = [row[0] for row in connection.execute("SELECT id FROM copied").fetchall()]
    assert sorted(found) == list(range(count))


async def test_records_without_a_schema_keep_all_that_kafka_knows(scene: Scene, tmp_path: Path) -> None:
    scene.fill([(None, b"one"), (b"k", b"two")])
    await scene.begin("parquet", "SparkSink", **{"spark.path": str(tmp_path / "out"), "spark.write.every.ms": "100"})
    await scene.written(2)
    rows = sorted(pq.read_table(tmp_path / "out").to_pylist(), key=lambda row: row["offset"])
    assert [(r["key"], r["value"], r["topic"], r["partition"], r["offset"]) for r in rows] == [
        (None, b"one", scene.name, 0, 0),
        (b"k", b"two", scene.name, 0, 1),
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"1"}]
    assert rows[0]["timestamp"] is not None


@pytest.mark.parametrize("isolation", ["", "read_uncommitted"])
async def test_records_of_aborted_transactions_are_left_out_unless_they_are_wanted(
    scene: Scene, tmp_path: Path, isolation: str
) -> None:
    producer = Producer({"bootstrap.servers": scene.bootstrap, "transactional.id": scene.name})
    scene.fill([])
    producer.init_transactions(60)
    for value in (b"kept", b"gone"):
        producer.begin_transaction()
        producer.produce(scene.name, value, partition=0)
        producer.flush(300)
        producer.commit_transaction(60) if value == b"kept" else producer.abort_transaction(60)
    more = {"consumer.override.isolation.level": isolation} if isolation else {}
    target = {"spark.path": str(tmp_path / "out"), "spark.write.every.ms": "100"}
    await scene.begin("parquet", "SparkSink", **target, **more)
    await scene.written(4)  # after the markers of both
    values = sorted(row["value"] for row in pq.read_table(tmp_path / "out").to_pylist())
    assert values == ([b"gone", b"kept"] if isolation else [b"kept"])


async def test_a_member_that_is_in_its_group_for_a_moment_repeats_nothing(scene: Scene, tmp_path: Path) -> None:
    """Its worker makes the brokers keep a group's offsets."""
    scene.fill([(b"k", b"one")])
    member = Consumer({"bootstrap.servers": scene.bootstrap, "group.id": f"connect-{scene.name}"})
    member.subscribe([scene.name])
    await eventually(lambda: member.poll(0) is None and bool(member.assignment()), seconds=SECONDS, what="a member")
    await scene.begin("parquet", "SparkSink", **{"spark.path": str(tmp_path / "out"), "spark.write.every.ms": "100"})
    await scene.copying(parts=False, records=False)
    assert not (tmp_path / "out").exists(), "a write begins when the group's offsets have a note of it"
    member.close()
    await scene.written(1)
    assert len(pq.read_table(tmp_path / "out").to_pylist()) == 1
