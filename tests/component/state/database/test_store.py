"""The store's guarantees on SQLite and PostgreSQL: migrations, order of revisions, all or nothing, one relay."""

import asyncio
import contextlib
import functools
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import sqlalchemy as sa
from sqlmodel import col, select

from keelman.api.event.v1 import event_pb2
from keelman.model.cluster import ClusterState, ExternalBrokers, WorkerClusterSpec
from keelman.model.errors import FailedPrecondition, InvalidArgument, Unavailable
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.database.database import Database
from keelman.state.database.key_source import made_key
from keelman.state.database.migrations.migrate import NEWEST
from keelman.state.database.tables import OutboxRow, RelayRow, SQLModel
from keelman.state.events.relay import Relay, relay_lease
from keelman.state.events.watch import Tail, changes_between
from keelman.state.nouns.registry import NOUNS
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import load, revision_of
from keelman.state.secrets.sealed_rows import rekey_file
from support.eventually import eventually
from support.state.stores import open_store

pytestmark = pytest.mark.component
EXTERNAL = ExternalBrokers("127.0.0.1:1")


@pytest.fixture(autouse=True)
def key_file(tmp_path, monkeypatch) -> Path:
    """The key file of all databases of a test."""
    file = tmp_path / "secrets.key"
    monkeypatch.setitem(globals(), "open_store", functools.partial(open_store, key_file=file))
    return file


async def outbox(store) -> list[OutboxRow]:
    async with store.database.read() as session:
        return list((await session.exec(select(OutboxRow).order_by(col(OutboxRow.revision)))).all())


async def test_the_migrations_make_the_tables_of_the_code(url: str) -> None:
    async with open_store(url) as store:

        def differences(connection: sa.Connection) -> list[object]:
            from alembic.autogenerate import compare_metadata  # noqa: PLC0415
            from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

            return compare_metadata(MigrationContext.configure(connection), SQLModel.metadata)

        async with store.database.engine.connect() as connection:
            assert await connection.run_sync(differences) == []
            version = (await connection.execute(sa.text("SELECT version_num FROM alembic_version"))).scalar()
            assert version == NEWEST


async def test_a_database_opens_with_its_own_key_alone(url: str, key_file: Path) -> None:
    spec = ExternalBrokers("127.0.0.1:1", {"ssl.key.password": "pa55-word"})
    async with open_store(url) as store, store.write() as tx:
        broker_clusters.create(tx, "first", spec)
    async with open_store(url) as store:
        assert store.snapshot.broker_cluster("first").spec == spec
        async with store.database.engine.connect() as connection:
            rows = str((await connection.execute(sa.text("SELECT payload FROM resource"))).scalars().all())
            assert "pa55" not in rows
            assert "sealed:1:" in rows
    key = key_file.rename(key_file.with_name("aside"))
    with pytest.raises(FailedPrecondition, match=r"secrets\.key' does not exist") as missing:
        async with open_store(url):
            pass
    assert missing.value.reason == "KEY_MISSING"
    assert not key_file.exists(), "a key that opens nothing is not made"
    made_key(key_file)
    with pytest.raises(FailedPrecondition, match=r"secrets\.key' is not the key") as wrong:
        async with open_store(url):
            pass
    assert wrong.value.reason == "KEY_WRONG"
    key.replace(key_file)
    async with open_store(url) as store:
        assert store.snapshot.broker_cluster("first").spec == spec
        before = key_file.read_bytes()
    assert await rekey_file(url, key_file) == 1
    assert key_file.read_bytes() != before
    async with open_store(url) as store:
        assert store.snapshot.broker_cluster("first").spec == spec


async def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    async with open_store(url) as store, store.database.engine.begin() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(FailedPrecondition, match="have version 9999, this keelman knows versions up to"):
        async with open_store(url):
            pass


async def test_each_write_has_its_event_and_they_are_numbered_without_gaps(url: str) -> None:
    async with open_store(url) as store:

        async def create(number: int) -> None:
            async with store.write() as tx:
                broker_clusters.create(tx, f"ext-{number}", EXTERNAL)

        await asyncio.gather(*(create(n) for n in range(20)))
        rows = await outbox(store)
        assert [r.revision for r in rows] == list(range(1, 21))
        assert sorted(r.name for r in rows) == sorted(f"ext-{n}" for n in range(20))
        for row in rows:
            event = event_pb2.Event.FromString(row.payload)
            assert (event.revision, event.name, event.type) == (row.revision, row.name, event_pb2.EVENT_TYPE_CREATED)
            assert event.broker_cluster.etag == str(row.revision)


async def test_a_failed_write_leaves_nothing_and_takes_no_number(url: str) -> None:
    async with open_store(url) as store:
        async with store.write() as tx:
            broker_clusters.create(tx, "first", EXTERNAL)
        with pytest.raises(InvalidArgument):  # noqa: PT012
            async with store.write() as tx:
                broker_clusters.create(tx, "second", EXTERNAL)
                raise InvalidArgument("after the write")
        async with store.write() as tx:
            broker_clusters.create(tx, "third", EXTERNAL)
        assert [(r.revision, r.name) for r in await outbox(store)] == [(1, "first"), (2, "third")]
        async with store.database.read() as session:
            assert sorted((await load(session, NOUNS)).broker_clusters) == ["first", "third"]


async def test_what_is_stored_comes_back(url: str) -> None:
    spec = WorkerClusterSpec("ext", count=2, properties={"a": "ä\n", "b": ""})
    async with open_store(url) as store:
        async with store.write() as tx:
            broker_clusters.create(tx, "ext", ExternalBrokers("h:1,i:2", {"security.protocol": "SSL"}))
        async with store.write() as tx:
            cluster = worker_clusters.create(tx, "demo", spec)
    async with open_store(url) as store, store.database.read() as session:
        snapshot = await load(session, NOUNS)
    assert snapshot.worker_clusters["demo"] == cluster
    assert cluster.spec == spec
    assert cluster.status.state is ClusterState.STOPPED
    assert snapshot.broker_clusters["ext"].spec == ExternalBrokers("h:1,i:2", {"security.protocol": "SSL"})


async def test_readers_do_not_wait_for_a_writer(url: str) -> None:
    async with open_store(url) as store, store.write() as tx:
        broker_clusters.create(tx, "ext", EXTERNAL)
        async with asyncio.timeout(300), store.database.read() as session:
            assert not (await load(session, NOUNS)).broker_clusters


async def test_a_reader_sees_one_moment(url: str) -> None:
    async with open_store(url) as store, store.database.read() as session:
        assert not (await load(session, NOUNS)).broker_clusters
        async with store.write() as tx:
            broker_clusters.create(tx, "ext", EXTERNAL)
        assert not (await load(session, NOUNS)).broker_clusters
        assert await revision_of(session) == 0, "nor the revision of the write"


async def test_the_tail_asks_no_table_for_what_its_process_commits(url: str) -> None:
    async with open_store(url) as store:
        tail = Tail(store)
        store.follow(tail.add)
        assert await tail.after(0) == ((), True)
        async with store.write() as tx:
            broker_clusters.create(tx, "one", EXTERNAL)
            broker_clusters.create(tx, "two", EXTERNAL)
        with patch.object(Database, "read", side_effect=AssertionError("it asked")):
            events, whole = await tail.after(0)
        async with store.database.read() as session:
            stored = await changes_between(session, 0, store.revision, 100)
    assert (list(events), whole) == (stored, True)


async def test_the_tail_of_one_process_has_another_ones_changes_between_its_own(postgresql) -> None:
    url = postgresql()
    async with open_store(url) as single_store, open_store(url) as two:
        tail = Tail(single_store)
        single_store.follow(tail.add)
        await tail.after(0)
        for number, store in enumerate((single_store, two, single_store)):
            async with store.write() as tx:
                broker_clusters.create(tx, f"brokers-{number}", EXTERNAL)
        events, whole = await tail.after(0)
        async with single_store.database.read() as session:
            stored = await changes_between(session, 0, single_store.revision, 100)
    assert (list(events), whole) == (stored, True)


async def test_two_processes_do_not_both_relay(postgresql) -> None:
    """Both on one PostgreSQL: the second takes over only when the first one's beat stops, by the second's own clock."""
    url, now = postgresql(), 0.0
    async with open_store(url) as store, open_store(url) as two:
        first = Relay(store, Hub(), "default", Tail(store), relay_lease(store.database, 0.6, holder="first"))
        lease = relay_lease(two.database, 0.6, holder="second", clock=lambda: now)
        second = Relay(two, Hub(), "default", Tail(two), lease)

        async def taken(epoch: int) -> bool:
            nonlocal now
            now += 0.1
            return await is_held(store, "second", epoch)

        runs = asyncio.ensure_future(first.run())
        await eventually(lambda: is_held(store, "first", 1))
        waits = asyncio.ensure_future(second.run())
        for _ in range(3):  # more than a lease passes
            beat = (await relay_row(store)).beat
            await eventually(lambda beat=beat: has_beaten(store, beat + 2))
            now += 0.4
        assert await is_held(store, "first", 1)
        await ended(runs)
        await eventually(lambda: taken(2))
        # When the row is taken away, it notices, and takes it back only because the other holder shows no sign of life.
        async with store.database.write() as turn:
            row = await turn.session.get_one(RelayRow, 1)
            row.holder, row.epoch = "robber", 3
        await eventually(lambda: taken(4))
        await ended(waits)


async def relay_row(store) -> RelayRow:
    async with store.database.read() as session:
        return (await session.exec(select(RelayRow))).one()


async def is_held(store, holder: str, epoch: int) -> bool:
    row = await relay_row(store)
    return (row.holder, row.epoch) == (holder, epoch)


async def has_beaten(store, beat: int) -> bool:
    return (await relay_row(store)).beat >= beat


async def ended(task) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_an_sqlite_file_belongs_to_one_process(tmp_path) -> None:
    path = tmp_path / "state.db"
    script = (
        "import asyncio, sys\n"
        "from keelman.state.database.database import open_database\n"
        "async def main():\n async with open_database(sys.argv[1]):\n  print('open', flush=True)\n"
        "  await asyncio.Event().wait()\nasyncio.run(main())"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
    try:
        assert b"open\n" in child.stdout
        with pytest.raises(FailedPrecondition, match=rf"in use by another state service \(pid {child.pid}\)"):
            async with open_store(str(path)):
                pass
    finally:
        child.kill()
        child.wait(60)
        child.stdout.close()
    async with open_store(str(path)):
        pass


@pytest.mark.parametrize(
    ("database", "error", "text"),
    [
        (
            "mysql://u:secret@h/d",
            InvalidArgument,
            r"'mysql://u:\[hidden\]@h/d' is not legal: a path, or a postgresql://",
        ),
        ("/proc/none/state.db", InvalidArgument, "a path that can be written"),
        ("postgresql://keelman@127.0.0.1:1/none", Unavailable, "the database does not answer: .*refused"),
    ],
)
async def test_a_database_that_cannot_be(database, error, text) -> None:
    with pytest.raises(error, match=text):
        async with open_store(database):
            pass
