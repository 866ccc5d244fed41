"""Data sets that Spark reads for a source: slots and the Spark service killed in the middle, every row once."""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_RUNNING, CopyRun
from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.model.errors import KeelmanError
from keelman.rpc.channels import channel
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.kafka.topics import AT_ONCE
from support.spark.service import SparkService, spark_service
from support.worker.processes import WorkerProcess, workers

pytestmark = pytest.mark.component
NUMBERS = itertools.count()
SECONDS = 300
FILES = 5
EACH = 4_000
TABLE_ROWS = 3_000
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@dataclass
class Scene:
    """One worker, and its one connector."""

    bootstrap: str
    name: str
    worker: WorkerProcess
    spark: SparkService

    async def begin(self, format_: str, kind: str = "SparkSource", **more: str) -> None:
        """Begins to read a data set, or to write one."""
        topic = {"topic" if kind == "SparkSource" else "topics": self.name}
        config = {"connector.class": kind, "spark.format": format_, **topic, **more}
        answer = await self.worker.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code in (200, 201), answer.text

    async def speed_up(self) -> None:
        """Removes the limit, which restarts nothing."""
        config = (await self.worker.ask("GET", f"/connectors/{self.name}/config")).json()
        del config["keelman.limit.records.per.second"]
        answer = await self.worker.ask("PUT", f"/connectors/{self.name}/config", config)
        assert answer.status_code == 200, answer.text

    async def offsets(self) -> list[dict[str, Any]]:
        """The connector's offsets in its worker's answer."""
        offsets: list[dict[str, Any]] = (await self.worker.ask("GET", f"/connectors/{self.name}/offsets")).json()[
            "offsets"
        ]
        return offsets

    async def done(self, reads: int = 1) -> dict[str, Any]:
        """Waits until the data set is read; returns its offset."""

        async def read() -> Any:
            offsets = await self.offsets()
            return offsets[0]["offset"] if len(offsets) == 1 and "time" in offsets[0]["offset"] else None

        offset: dict[str, Any] = await self.eventually(read, "all is read")
        return offset

    async def copying(self, *unlike: CopyRun, parts: bool = True, records: bool = True) -> CopyRun:
        """Waits for a part's copy run, or the task's own, that has copied something."""
        before = {run.uid for run in unlike}

        async def found() -> CopyRun | None:
            with contextlib.suppress(KeelmanError):
                async with channel(self.spark.address) as opened:
                    listed = await CopyRunServiceStub(opened).ListCopyRuns(ListCopyRunsRequest(connector=self.name))
                runs = [r for r in listed.copy_runs if bool(r.part) is parts and r.state == COPY_RUN_STATE_RUNNING]
                return next((r for r in runs if (r.progress.records > 0 or not records) and r.uid not in before), None)
            return None

        run: CopyRun = await self.eventually(found, "a part copies")
        return run

    async def eventually(self, condition: Callable[[], Any], what: str) -> Any:
        """Waits for a condition; a failure has the ends of the logs."""
        try:
            return await eventually(condition, seconds=SECONDS, every=0.1, what=what)
        except AssertionError as error:
            text = (await self.worker.ask("GET", f"/connectors/{self.name}/status")).text
            tails = f"{what}: {text}\n{self.worker.output[-3000:]}\n{self.spark.log.read_text()[-5000:]}"
            raise AssertionError(tails) from error

    async def written(self, least: int) -> None:
        """Waits until the group's offset is there or further."""

        async def is_there() -> bool:
            rows = await self.offsets() or [{}]
            return int(rows[0].get("offset", {}).get("kafka_offset", 0)) >= least

        await self.eventually(is_there, f"{least} records are written")

    def fill(self, records: list[tuple[bytes | None, bytes]]) -> None:
        """Writes records to the topic."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(self.name, 1, 1)])[self.name].result(300)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for key, value in records:
            producer.produce(self.name, value, key, partition=0, headers=[("h", b"1")])
        assert producer.flush(300) == 0

    def forget(self) -> None:
        """Resets the connector's offsets, as Connect does: with tombstones."""
        topic = f"{self.worker.group}-offsets"
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for partition in range(3):
            for key, value in self.copied(topic, partition):
                if value is not None and key.startswith(f'["{self.name}"'.encode()):
                    producer.produce(topic, None, key, partition=partition)
        assert producer.flush(300) == 0

    def copied(self, topic: str = "", partition: int = 0) -> list[tuple[Any, Any]]:
        """Every committed record of the topic."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "read", "enable.partition.eof": True}
        consumer = Consumer({**settings, **AT_ONCE, "enable.auto.commit": False})
        results: list[tuple[Any, Any]] = []
        try:
            consumer.assign([TopicPartition(topic or self.name, partition, 0)])
            while True:
                message = consumer.poll(0.2)
                if message is not None and message.error():
                    return results
                if message is not None:
                    results.append((message.key(), message.value()))
        finally:
            consumer.close()


@pytest.fixture
def table() -> Iterator[str]:
    """A PostgreSQL with a table of numbers; its JDBC address."""
    if not BINARIES:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres")
    binaries = BINARIES[-1].parent
    # It refuses to run as root, and pytest's folder is closed to other users.
    as_user: dict[str, Any] = {}
    folder = Path(subprocess.check_output(["mktemp", "-d", "/tmp/keelman-pg.XXXXXX"], text=True).strip())
    if os.getuid() == 0:
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, -1)
        as_user = {"user": "postgres", "group": owner.pw_gid, "extra_groups": []}
    (port,) = free_ports(1)
    data = folder / "data"
    results = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "keelman",
        "-A",
        "trust",
        "--no-sync",
        "--no-locale",
        "-E",
        "UTF8",
    ]
    subprocess.run(results, check=True, stdout=subprocess.DEVNULL, cwd=folder, **as_user)
    flags = ["-D", data, "-k", folder, "-h", "127.0.0.1", "-p", str(port), "-c", "fsync=off"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([binaries / "postgres", *flags], cwd=folder, stdout=log, stderr=log, **as_user)
    try:
        requests = [binaries / "psql", "-h", "127.0.0.1", "-p", str(port), "-U", "keelman", "-q", "postgres", "-c"]
        rows = f"SELECT id, 'n' || id AS name FROM generate_series(0, {TABLE_ROWS - 1}) AS id"
        slow = "CREATE VIEW slow AS SELECT * FROM numbers WHERE pg_sleep(0.001) IS NOT NULL"
        # Otherwise a part would sleep for the rows of the others, too: conditions are evaluated in the order of their
        # costs.
        last = "ALTER FUNCTION pg_sleep(double precision) COST 1000"
        filled = f"CREATE TABLE numbers AS {rows}; {slow}; {last}"
        deadline = time.monotonic() + 300
        while subprocess.run([*requests, filled], check=False, cwd=folder).returncode:
            assert time.monotonic() < deadline, (folder / "log").read_text()
        yield f"jdbc:postgresql://127.0.0.1:{port}/postgres?user=keelman"
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def scene_with(bootstrap: str, spark: SparkService, folder: Path) -> AsyncIterator[Scene]:
    name = f"formats{next(NUMBERS)}"
    worker = WorkerProcess(folder / "worker", bootstrap, name, spark.address)
    async with workers(worker):
        yield Scene(bootstrap, name, worker, spark)
        assert await worker.end() == 0


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
    kind: str, bootstrap: str, table: str, tmp_path: Path
) -> None:
    """The test has its own Spark service: the other tests share theirs."""
    started, count = partial(spark_service, tmp_path / "spark", port=free_ports(1)[0]), 20_000
    named = {
        "spark.option.driver": "org.postgresql.Driver",
        "spark.option.url": table,
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
        with psycopg.connect(table.removeprefix("jdbc:")) as connection:
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

    def rows() -> list[Any]:
        with contextlib.suppress(FileNotFoundError, pa.ArrowInvalid):
            return list(pq.read_table(tmp_path / "out").to_pylist())
        return []

    await eventually(rows, seconds=SECONDS, every=0.1, what="it is written")
    assert await scene.offsets() == []
    member.close()

    async def told() -> bool:
        (row,) = await scene.offsets() or [{}]
        return row.get("offset", {}).get("kafka_offset") == 1

    await eventually(told, seconds=SECONDS, every=0.1, what="its group gets the offsets")
    assert len(rows()) == 1
