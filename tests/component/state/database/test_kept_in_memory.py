"""The memory equals the database: with two processes on one database, and after an interrupted commit."""

import functools
from pathlib import Path

import pytest
import sqlalchemy as sa

from keelman.model.cluster import ClusterGoal, ExternalBrokers, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import AlreadyExists
from keelman.state.clusters import broker_clusters, worker_clusters
from keelman.state.database.tables import OutboxRow
from keelman.state.nouns.registry import NOUNS
from keelman.state.resources.store import load, write_rows
from keelman.state.resources.transaction import Change, Transaction
from support.state.stores import open_store

pytestmark = pytest.mark.component
EXTERNAL = ExternalBrokers("127.0.0.1:1")


@pytest.fixture(autouse=True)
def key_file(tmp_path, monkeypatch) -> Path:
    """The key file of all databases of a test."""
    file = tmp_path / "secrets.key"
    monkeypatch.setitem(globals(), "open_store", functools.partial(open_store, key_file=file))
    return file


async def test_two_processes_see_each_others_writes(postgresql) -> None:
    url = postgresql()
    heard: list[list[str]] = [[], []]
    async with open_store(url) as single_store, open_store(url) as two:
        for store, names in zip((single_store, two), heard, strict=True):
            store.listen(lambda changes, names=names: names.extend(c.name for c in changes))
        async with single_store.write() as tx:
            broker_clusters.create(tx, "ext", EXTERNAL)
        assert "ext" not in two.snapshot.broker_clusters
        with pytest.raises(AlreadyExists):  # a writer sees earlier writes
            async with two.write() as tx:
                broker_clusters.create(tx, "ext", EXTERNAL)
        assert "ext" in two.snapshot.broker_clusters
        async with two.write() as tx:
            worker_clusters.create(tx, "demo", WorkerClusterSpec("ext", count=1))
        await single_store.catch_up()
        async with single_store.write() as tx:
            worker_clusters.delete(tx, "demo", "")
            tx.drop(WorkerCluster.NOUN, "demo")
        async with two.database.write() as turn:  # the outbox is trimmed: then everything is read again
            await (await turn.session.connection()).execute(sa.delete(OutboxRow))
        await two.catch_up()
        async with single_store.database.read() as session:
            stored = await load(session, NOUNS)
        for noun in NOUNS:
            assert (
                dict(single_store.snapshot.resources(noun))
                == dict(two.snapshot.resources(noun))
                == stored.resources(noun)
            )
        assert single_store.revision == two.revision
    assert heard[0][-1] == heard[1][-1] == "demo"
    assert heard[1].count("ext") == 1


async def test_a_write_whose_commit_was_cut_off_is_found_by_the_next(url: str) -> None:
    """The write may have been stored although its writer got an error."""
    async with open_store(url) as store:
        async with store.database.write() as turn:  # the effect of such a write: rows that the snapshot does not have
            tx = Transaction(turn, store.snapshot, store.snapshot.draft(), store.database.clock(), NOUNS)
            cluster = broker_clusters.create(tx, "ext", EXTERNAL)
            await write_rows(turn.session, NOUNS, [Change(cluster.NOUN, cluster.name, None, cluster)], tx.events)
        assert "ext" not in store.snapshot.broker_clusters
        async with store.write() as tx:
            assert tx.snapshot.broker_clusters["ext"] == cluster
            broker_clusters.delete(tx, "ext", cluster.etag)
        assert store.snapshot.broker_clusters["ext"].goal is ClusterGoal.DELETED
