"""Gives the leader's parts a store of their own: their writes are stored only while this process leads."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from keelman.state.replicas.lease import Lease
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Transaction


class FencedStore(ResourceStore):
    """The same store, each of whose transactions is checked against the lease. Raises LeaseLost."""

    def __init__(self, store: ResourceStore, lease: Lease) -> None:
        super().__init__(store.database, store.nouns, store.settle)
        self._store, self._lease = store, lease
        self._listeners, self._followers = store._listeners, store._followers

    @property
    def snapshot(self) -> Snapshot:
        """The same as the store's."""
        return self._store.snapshot

    @property
    def revision(self) -> int:
        """The same as the store's."""
        return self._store.revision

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Opens one transaction, stored only if this process has the lease at that time."""
        async with self._store.write() as tx:
            await self._lease.check(tx)
            yield tx

    async def catch_up(self) -> None:
        """Does as the store."""
        await self._store.catch_up()
