"""Publishes the audit's events to their topic, in order: a part of the leading state service.

The progress is stored after the brokers have the events, so that a former leader may publish some again: a reader
drops events whose number is not greater than its last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from keelman.kafka.feed import AUDIT, AUDIT_PROPERTIES, EventPublisher, Fact
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of, wait_or_stop
from keelman.state.audit.trail import AuditTrail
from keelman.state.events.relay import Publisher
from keelman.state.reports.events_brokers import events_brokers_known, events_moved
from keelman.state.resources.hub import Hub
from keelman.state.resources.store import ResourceStore

log = get_logger()
LOOK_SECONDS = 5.0
"""How often events of other state services of the same database are looked for."""


def _publisher(servers: str, topics: Sequence[str], properties: Mapping[str, str]) -> EventPublisher:
    return EventPublisher(servers, topics, properties, AUDIT_PROPERTIES)


@dataclass(slots=True)
class AuditRelay:
    """Publishes while this process leads; waits without harm while there is no broker."""

    store: ResourceStore
    hub: Hub
    events_broker_cluster: str
    trail: AuditTrail
    connect: Callable[[str, Sequence[str], Mapping[str, str]], AbstractAsyncContextManager[Publisher]] = _publisher

    async def run(self) -> None:
        """Runs until cancelled."""
        backoff = Backoff(first=0.2, most=5.0)
        while True:
            brokers = await events_brokers_known(self.store, self.hub, self.events_broker_cluster)
            try:
                async with self.connect(brokers.bootstrap_servers, (AUDIT,), brokers.client_properties) as publisher:
                    backoff.reset()
                    moved = events_moved(self.store, self.hub, self.events_broker_cluster, brokers)
                    await first_of(self._drain(publisher), moved)
            except Unavailable as error:
                if backoff.is_new(error.message):
                    log.info("audit_relay_waits", error=error.message)
                await asyncio.sleep(backoff.next())

    async def _drain(self, publisher: Publisher) -> None:
        published = await self.trail.published()
        while True:
            self.trail.grown.clear()
            rows = await self.trail.after(published)
            if not rows:
                await wait_or_stop(self.trail.grown, None if self.trail.database.is_sole else LOOK_SECONDS)
                continue
            await publisher.publish([Fact(AUDIT, str(row.number), row.payload) for row in rows])
            published = rows[-1].number
            await self.trail.note_published(published)
