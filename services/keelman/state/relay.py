"""The relay: publishes the outbox in order, one process at a time.

Whoever has the relay's row with its present epoch publishes; every advance is checked against that epoch. A process
takes the row over when its beat stood still for the lease time by its own monotonic clock, so no two wall clocks are
compared. How far it is, it notes a moment later, for many events at once. One that ended before, or lost the row, may
have sent a few events again: a reader drops what is not newer than its last.

After the event of a delete comes a tombstone, so that what is gone leaves the compacted topic; what is published again
has both again, and a name that is used again comes after them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

import sqlalchemy as sa
from sqlmodel import col

from keelman.api.event.v1 import event_pb2
from keelman.kafka.feed import EventPublisher, Fact, event_topic
from keelman.model.errors import Conflict, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.state.events_cluster import EventsBrokers, events_brokers, events_moved
from keelman.state.failpoints import hit
from keelman.state.hub import Hub
from keelman.state.lease import identity
from keelman.state.nouns.registry import NOUNS
from keelman.state.snapshot import BROKER_CLUSTER
from keelman.state.store import Store
from keelman.state.tables import OutboxRow, RelayRow
from keelman.state.watch import Change, Tail

log = get_logger()
KEPT = 10_000
NOTE_SECONDS = 0.5
"""So long after an event was published it is noted, with all that were meanwhile; after a crash these come again."""
TOPICS = tuple(event_topic(noun) for noun in NOUNS)


class Publisher(Protocol):
    """Where the relay publishes: the brokers."""

    async def publish(self, facts: Sequence[Fact]) -> None:
        """Returns when all are stored in this order; raises Unavailable when some may not be."""


@dataclass(slots=True)
class Relay:
    """`sole` says that no other process can have this database (an SQLite file is locked): no lease is waited for."""

    store: Store
    hub: Hub
    events_broker_cluster: str
    tail: Tail
    sole: bool
    lease_seconds: float = 6.0
    clock: Callable[[], float] = time.monotonic
    connect: Callable[[str, Sequence[str], Mapping[str, str]], AbstractAsyncContextManager[Publisher]] = EventPublisher
    holder: str = field(default_factory=identity)
    _published: int = 0
    _confirmed: float = 0.0
    """When the row was last seen to be this one's."""
    _unnoted: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Runs until cancelled; waits without harm while there is no broker."""
        while True:
            epoch = await self._take()
            log.info("relay_taken", epoch=epoch)
            try:
                await first_of(self._publish(epoch), self._note(epoch), self._beat(epoch))
            except Conflict as error:
                log.warning("relay_lost", error=error.message)

    async def _take(self) -> int:
        """Waits until the row may be taken, takes it, and returns the new epoch."""
        seen, since = -1, self.clock()
        while True:
            async with self.store.database.write() as turn:
                row = await turn.session.get_one(RelayRow, 1, with_for_update=True)
                if row.beat != seen:
                    seen, since = row.beat, self.clock()
                if self.sole or not row.holder or self.clock() - since >= self.lease_seconds:
                    row.holder, row.epoch, row.beat = self.holder, row.epoch + 1, row.beat + 1
                    hit("relay-taken")
                    self._published, self._confirmed = row.published, self.clock()
                    return row.epoch
            await asyncio.sleep(self.lease_seconds / 6)

    async def _beat(self, epoch: int) -> None:
        while True:
            await asyncio.sleep(self.lease_seconds / 3)
            if not self.sole:
                await self._update(epoch, {"beat": RelayRow.beat + 1})

    async def _publish(self, epoch: int) -> None:
        backoff, logged = Backoff(first=0.2, most=1.0), False
        while True:
            brokers = await self._brokers()
            connection = self.connect(brokers.bootstrap_servers, TOPICS, brokers.client_properties)
            try:
                async with connection as publisher:
                    log.info("relay_connected", bootstrap_servers=brokers.bootstrap_servers)
                    logged = False
                    backoff.reset()
                    moved = events_moved(self.store, self.hub, self.events_broker_cluster, brokers)
                    await first_of(self._drain(epoch, publisher), moved)
            except Unavailable as error:
                if not logged:
                    log.info("relay_waits", error=error.message)
                logged = True
                await asyncio.sleep(backoff.next())

    async def _drain(self, epoch: int, publisher: Publisher) -> None:
        with self.hub.subscribe() as changed:
            while True:
                changed.clear()
                found, _ = await self.tail.after(self._published)
                if not found:
                    await changed.wait()
                    continue
                facts = [fact for change in found for fact in facts_of(change)]
                is_old = not self.sole and self.clock() - self._confirmed > self.lease_seconds / 2
                if is_old or len(facts) > len(found):
                    # A tombstone that comes too late would hide a name that is used again: only who relays sends one.
                    await self._update(epoch, {"beat": RelayRow.beat + 1})
                await publisher.publish(facts)
                self._published = found[-1].revision
                self._unnoted.set()

    async def _note(self, epoch: int) -> None:
        """Stores how far it is, soon after it went on."""
        while True:
            await self._unnoted.wait()
            await asyncio.sleep(NOTE_SECONDS)
            self._unnoted.clear()
            await self._update(epoch, {"published": self._published, "beat": RelayRow.beat + 1})

    async def _update(self, epoch: int, values: dict[str, object]) -> None:
        """Changes the row, and trims the outbox when the relay went on; raises Conflict when another process has it."""
        begun = self.clock()
        async with self.store.database.aside() as connection:
            changed = await connection.execute(
                sa.update(RelayRow).where(col(RelayRow.id) == 1, col(RelayRow.epoch) == epoch).values(**values)
            )
            if changed.rowcount != 1:
                raise Conflict("another state service relays the events now", reason="RELAY_TAKEN")
            published = values.get("published")
            if isinstance(published, int) and published > KEPT:
                await connection.execute(sa.delete(OutboxRow).where(col(OutboxRow.revision) <= published - KEPT))
        self._confirmed = begun

    async def _brokers(self) -> EventsBrokers:
        """Waits until the events' broker cluster has an address."""
        with self.hub.subscribe((BROKER_CLUSTER, self.events_broker_cluster)) as changed:
            while True:
                changed.clear()
                if found := events_brokers(self.store, self.events_broker_cluster):
                    return found
                await changed.wait()


def facts_of(change: Change) -> list[Fact]:
    """The records of an event: one, and a tombstone after that of a delete."""
    topic = event_topic(change.noun)
    fact = Fact(topic, change.name, change.event)
    gone = event_pb2.Event.FromString(change.event).type == event_pb2.EVENT_TYPE_DELETED
    return [fact, Fact(topic, change.name, None)] if gone else [fact]
