"""Publishes the outbox in order, one process at a time: the holder of the relay's lease.

The holder stores its progress a moment later, for many events at once. A holder that ended before that, or lost the
lease, may have sent a few events again: a reader drops events that are not newer than its last.

After the event of a delete comes a tombstone, so that deleted resources leave the compacted topic; if published again,
both come again, and the events of a reused name come after them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import sqlalchemy as sa
from sqlmodel import col, select

from keelman.api.event.v1 import event_pb2
from keelman.kafka.feed import EventPublisher, Fact, event_topic
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.state.database.database import Database
from keelman.state.database.failpoints import hit
from keelman.state.database.tables import OutboxRow, RelayRow
from keelman.state.events.watch import Tail, WatchedChange
from keelman.state.nouns.registry import NOUNS
from keelman.state.replicas.lease import Lease, LeaseLost
from keelman.state.reports.events_brokers import events_brokers_known, events_moved
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore

log = get_logger()
KEPT = 10_000
NOTE_SECONDS = 0.5
"""The time from the publishing of an event until the progress is stored, with all events meanwhile; after a crash these
are sent again."""
TOPICS = tuple(event_topic(noun) for noun in NOUNS)


class Publisher(Protocol):
    """The relay's destination: the brokers."""

    async def publish(self, facts: Sequence[Fact]) -> None:
        """Returns when all are stored in this order; raises Unavailable when some may not be."""


def relay_lease(database: Database, seconds: float = 6.0, **options: Any) -> Lease:
    """Returns the lease to publish a database's outbox; `options` are for Lease."""
    return Lease(database, "relay", seconds, table=RelayRow, key=1, **options)


@dataclass(slots=True)
class Relay:
    """Publishes while it has the lease."""

    store: ResourceStore
    hub: Hub
    events_broker_cluster: str
    tail: Tail
    lease: Lease
    connect: Callable[[str, Sequence[str], Mapping[str, str]], AbstractAsyncContextManager[Publisher]] = EventPublisher
    _published: int = 0
    _unnoted: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Runs until cancelled; waits without harm while there is no broker."""
        while True:
            await self.lease.take()
            log.info("relay_taken", epoch=self.lease.epoch)
            hit("relay-taken")
            try:
                async with self.store.database.read() as session:
                    self._published = (await session.exec(select(RelayRow.published))).one()
                await first_of(self._publish(), self._note(), self.lease.keep())
            except (LeaseLost, Unavailable) as error:
                log.warning("relay_lost", error=error.message)

    async def _publish(self) -> None:
        backoff = Backoff(first=0.2, most=1.0)
        while True:
            brokers = await events_brokers_known(self.store, self.hub, self.events_broker_cluster)
            connection = self.connect(brokers.bootstrap_servers, TOPICS, brokers.client_properties)
            try:
                async with connection as publisher:
                    log.info("relay_connected", bootstrap_servers=brokers.bootstrap_servers)
                    backoff.reset()
                    moved = events_moved(self.store, self.hub, self.events_broker_cluster, brokers)
                    await first_of(self._drain(publisher), moved)
            except Unavailable as error:
                if backoff.is_new(error.message):
                    log.info("relay_waits", error=error.message)
                await asyncio.sleep(backoff.next())

    async def _drain(self, publisher: Publisher) -> None:
        with self.hub.subscribe() as changed:
            while True:
                changed.clear()
                changes, _ = await self.tail.after(self._published)
                if not changes:
                    await changed.wait()
                    continue
                facts = [fact for change in changes for fact in facts_of(change)]
                # A tombstone that comes too late would hide a reused name: before one the lease is renewed in the
                # database, whatever the clock shows, which may have halted.
                await (self.lease.renew() if len(facts) > len(changes) else self.lease.confirm())
                await publisher.publish(facts)
                self._published = changes[-1].revision
                self._unnoted.set()

    async def _note(self) -> None:
        """Stores the progress soon after each publishing, and trims the outbox."""
        while True:
            await self._unnoted.wait()
            await asyncio.sleep(NOTE_SECONDS)
            self._unnoted.clear()
            trimmed = sa.delete(OutboxRow).where(col(OutboxRow.revision) <= self._published - KEPT)
            await self.lease.renew(trimmed, published=self._published)


def facts_of(change: WatchedChange) -> list[Fact]:
    """Returns the records of an event: one, and a tombstone after that of a delete."""
    topic = event_topic(change.noun)
    fact = Fact(topic, change.name, change.event)
    gone = event_pb2.Event.FromString(change.event).type == event_pb2.EVENT_TYPE_DELETED
    return [fact, Fact(topic, change.name, None)] if gone else [fact]
