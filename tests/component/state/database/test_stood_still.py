"""A writer of PostgreSQL stops in the middle of its transaction, frozen or with its host lost.

The others wait for it for a limited time, and its later writes are not stored.
"""

import asyncio
from pathlib import Path

import pytest

from keelman.model.cluster import ExternalBrokers
from keelman.model.errors import Unavailable
from keelman.state.clusters import broker_clusters
from keelman.state.database import database
from keelman.state.resources.store import ResourceStore
from support.state.stores import open_store

pytestmark = pytest.mark.component
EXTERNAL = ExternalBrokers("127.0.0.1:1")


async def test_a_transaction_that_stands_still_is_ended(postgresql, tmp_path: Path, monkeypatch) -> None:
    url, key = postgresql(), tmp_path / "secrets.key"
    async with open_store(url, key_file=key) as store, open_store(url, key_file=key) as other:
        monkeypatch.setitem(database.OF_SERVER, "idle_in_transaction_session_timeout", "1s")
        await store.database.engine.dispose()  # the next connection has the setting
        with pytest.raises(Unavailable, match="database"):
            await _frozen_in_a_write(store, other)
        await store.catch_up()
        assert set(store.snapshot.broker_clusters) == {"ext"}
        async with store.write() as tx:
            broker_clusters.create(tx, "again", EXTERNAL)


async def _frozen_in_a_write(store: ResourceStore, other: ResourceStore) -> None:
    """Begins a write in one store, and continues only after the other store has written."""
    async with store.write() as tx:
        broker_clusters.create(tx, "late", EXTERNAL)
        async with asyncio.timeout(300), other.write() as in_time:
            broker_clusters.create(in_time, "ext", EXTERNAL)


async def test_who_says_otherwise_in_the_url_has_it_so() -> None:
    assert database.reach("postgresql://k@h/s?tcp_user_timeout=77") == {
        name: value for name, value in database.REACH.items() if name != "tcp_user_timeout"
    }
