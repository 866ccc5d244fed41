"""Data sets that take each write once: interrupted at every step, repeated, and overtaken by another attempt."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.copy.v1.write_job_pb2 import WriteJob, WriteRange
from keelman.model.errors import Conflict, FailedPrecondition, InvalidArgument
from keelman.runtime.java.maven import packages
from keelman.spark.data_sets.targets import files, tables
from keelman.spark.data_sets.targets.files import write_files
from keelman.spark.data_sets.targets.tables import Database, Row, write_table
from support.servers.postgresql import running_postgresql

pytestmark = [pytest.mark.component, pytest.mark.timeout(300)]
ROWS = 20


class Crash(Exception):
    """What a test raises where a process would have been killed."""


def job(version: int = 1, begin: int = 0) -> WriteJob:
    """A write of one partition."""
    stretch = WriteRange(topic="t", partition=0, begin=begin, end=begin + ROWS)
    return WriteJob(number=1, ranges=[stretch], writer="ab" * 16, version=version)


@pytest.fixture(scope="module")
async def session() -> Any:
    """Spark in a JVM of its own, with PostgreSQL's driver."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  (a second)

    jars = await packages(("org.postgresql:postgresql:42.7.4",))
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.extraClassPath", ":".join(map(str, jars))).getOrCreate()
    yield session
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.kill()
    gateway.proc.wait(60)


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Has a method raise at its n-th call, before or after it has done its work."""

    @contextlib.contextmanager
    def at(owner: Any, name: str, *, call: int = 1, after: bool = False) -> Iterator[None]:
        real, calls = getattr(owner, name), iter(range(1, 1_000))

        def counted(*given: Any, **more: Any) -> Any:
            number = next(calls)
            if number == call and not after:
                raise Crash(name)
            answer = real(*given, **more)
            if number == call:
                raise Crash(name)
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, counted)
            with pytest.raises(Crash):
                yield

    return at


class Files:
    """A folder of Parquet files, as the tests write to it."""

    def __init__(self, session: Any, path: Path) -> None:
        self.session, self.path = session, path

    def write(self, job: WriteJob, during: Callable[[], None] = lambda: None) -> None:
        """Writes the rows of a job in three files; `during` is called before Spark's end."""

        def save(folder: str) -> None:
            self.session.range(job.ranges[0].begin, job.ranges[0].end, 1, 3).write.parquet(folder)
            during()

        write_files(self.session, str(self.path), job, save)

    def rows(self) -> list[int]:
        """What a reader finds."""
        return sorted(row["id"] for row in self.session.read.parquet(str(self.path)).collect())


@pytest.fixture
def folder(session: Any, tmp_path: Path) -> Files:
    return Files(session, tmp_path / "out")


def test_files_are_there_once_wherever_a_write_was_interrupted(folder: Files, interrupted: Callable[..., Any]) -> None:
    def crash() -> None:
        raise Crash

    with pytest.raises(Crash):
        folder.write(job(), crash)
    with interrupted(files.Folder, "create"):
        folder.write(job())
    with interrupted(files.Folder, "create", after=True):
        folder.write(job())
    with interrupted(files.Folder, "_renamed", call=2):
        folder.write(job())
    with interrupted(files.Folder, "_renamed", after=True):
        folder.write(job())
    folder.write(job())
    folder.write(job())
    assert folder.rows() == list(range(ROWS))
    with interrupted(files.Folder, "move", after=True):
        folder.write(job(2, ROWS))
    folder.write(job(2, ROWS))
    assert folder.rows() == list(range(2 * ROWS))
    assert [p.name for p in (folder.path / "_keelman").iterdir()] == ["ab" * 16]
    assert sorted(p.name for p in (folder.path / "_keelman" / ("ab" * 16)).glob("[0-9]*")) == ["1.json", "2.json"]


def test_an_attempt_that_another_one_overtook_counts_for_nothing(folder: Files) -> None:
    folder.write(job(), lambda: folder.write(job()))
    assert folder.rows() == list(range(ROWS))


def test_another_write_of_the_same_number_is_refused(folder: Files) -> None:
    folder.write(job())
    with pytest.raises(FailedPrecondition, match=r"has write 1 .* up to t-0:20, not up to t-0:25"):
        folder.write(job(1, 5))
    assert folder.rows() == list(range(ROWS))


def test_old_notes_of_writes_are_removed(folder: Files) -> None:
    for version in range(1, 9):
        folder.write(job(version, version * ROWS))
    assert len(list((folder.path / "_keelman").rglob("*.json"))) == files.KEPT_CLAIMS


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The JDBC address of a PostgreSQL."""
    with running_postgresql() as server:
        yield f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?user=keelman"


class Table:
    """A table, as the tests write to it."""

    def __init__(self, session: Any, url: str, name: str) -> None:
        self.session, self.options = session, {"url": url, "driver": "org.postgresql.Driver", "dbtable": name}

    def write(self, job: WriteJob, column: str = "id") -> None:
        """Writes the rows of a job."""
        job.writer = self.options["dbtable"].ljust(32, "0")
        frame = self.session.range(job.ranges[0].begin, job.ranges[0].end, 1, 3).withColumnRenamed("id", column)
        write_table(self.session, self.options, job, frame)

    def rows(self) -> list[int]:
        """What a reader finds."""
        return sorted(r["id"] for r in self.session.read.format("jdbc").options(**self.options).load().collect())

    def names(self) -> list[str]:
        """The database's tables."""
        query = {**self.options, "dbtable": "pg_tables"}
        rows = self.session.read.format("jdbc").options(**query).load().where("schemaname = 'public'").collect()
        return sorted(r["tablename"] for r in rows)


@pytest.fixture
def table(session: Any, url: str, request: pytest.FixtureRequest) -> Table:
    return Table(session, url, f"t{request.node.name.encode().hex()[-20:]}")


def test_tables_have_a_write_once_wherever_it_was_interrupted(table: Table, interrupted: Callable[..., Any]) -> None:
    with interrupted(Database, "make_like"):
        table.write(job())
    with interrupted(Database, "make_like", after=True):
        table.write(job())
    with interrupted(Row, "insert"):
        table.write(job())
    with interrupted(Row, "insert", after=True):
        table.write(job())
    table.write(job())
    table.write(job())
    table.write(job(2, ROWS))
    assert table.rows() == list(range(2 * ROWS))
    left = [name for name in table.names() if name.startswith("keelman_")]
    assert left == [tables.WRITES]


def test_the_rows_and_the_number_are_one_transaction(table: Table, interrupted: Callable[..., Any]) -> None:
    table.write(job())
    # Of the statements of a write: is there a row, take, make like, number, rows.
    with interrupted(Database, "run", call=4):
        table.write(job(2, ROWS))
    assert table.rows() == list(range(ROWS))
    table.write(job(2, ROWS))
    assert table.rows() == list(range(2 * ROWS))


def test_an_attempt_that_another_one_replaced_inserts_nothing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    insert = Row.insert

    def overtaken(row: Row, *given: Any) -> None:
        monkeypatch.setattr(Row, "insert", insert)
        table.write(job(2))
        insert(row, *given)

    table.write(job(1, -ROWS))
    monkeypatch.setattr(Row, "insert", overtaken)
    with pytest.raises(Conflict, match="another attempt"):
        table.write(job(2))
    table.write(job(2))
    assert table.rows() == list(range(-ROWS, ROWS))


def test_what_a_table_does_not_fit_is_named(table: Table) -> None:
    table.write(job())
    with pytest.raises(InvalidArgument, match=r"value.schema.*other.*columns of .*: id"):
        table.write(job(2), column="other")
    with pytest.raises(FailedPrecondition, match="has write 1"):
        table.write(job(1, 7))
    assert table.rows() == list(range(ROWS))
