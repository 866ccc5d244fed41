"""Reads the topics of reports, and drops outdated reports with a tombstone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sqlmodel import col, select

from keelman.kafka.feed import CONNECTOR_REPORTS, COPY_RUN_REPORTS, REPORT_TOPICS, Fact, ReportPublisher, consume
from keelman.model.errors import Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of, supervise
from keelman.state.database.tables import OutboxRow
from keelman.state.reports.events_brokers import EventsBrokers, events_brokers, events_moved
from keelman.state.reports.reports import Reports
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import BROKER_CLUSTER, WORKER_CLUSTER
from keelman.state.resources.store import ResourceStore
from keelman.state.resources.transaction import Change

log = get_logger()
SWEEP_SECONDS = 60.0


@dataclass(slots=True)
class Sweeper:
    """Finds outdated reports: of connectors that are deleted, and of worker clusters that are gone. Those of worker
    clusters that were never known here stay, as another system may use the same topics."""

    store: ResourceStore
    reports: Reports
    _known: set[str] = field(default_factory=set)
    _knows_former: bool = False

    def changed(self, changes: Sequence[Change]) -> None:
        """Notes the present and former worker clusters. The store calls it after each commit."""
        self._known.update(change.name for change in changes if change.noun == WORKER_CLUSTER)

    async def sweep(self) -> list[Fact]:
        """Forgets outdated reports and returns their tombstones; call it now and then. A worker cluster whose workers
        still report is not gone."""
        if not self._knows_former:
            await self._learn_former()
        present = self.store.snapshot.worker_clusters
        self._known.update(present)
        connectors = self.reports.connectors
        gone = {cluster for cluster in self._known.difference(present) if connectors.is_silent(cluster)}
        facts = [Fact(CONNECTOR_REPORTS, key, None) for key in connectors.sweep(gone)]
        uids = self.reports.runs.sweep(gone, connectors.is_deleted)
        return facts + [Fact(COPY_RUN_REPORTS, uid, None) for uid in uids]

    async def _learn_former(self) -> None:
        """Notes the worker clusters with events in the database: some were deleted by an earlier process, or just
        before it ended."""
        statement = select(OutboxRow.name).where(col(OutboxRow.noun) == WORKER_CLUSTER).distinct()
        try:
            async with self.store.database.read() as session:
                self._known.update((await session.exec(statement)).all())
        except Unavailable as error:
            log.info("former_worker_clusters_unknown", error=error.message)
        else:
            self._knows_former = True


@dataclass(slots=True)
class ReportsReader:
    """Keeps the reports up to date with the topics."""

    store: ResourceStore
    hub: Hub
    reports: Reports
    events_broker_cluster: str

    async def run(self) -> None:
        """Runs until cancelled; waits without harm while there is no broker."""
        sweeper = Sweeper(self.store, self.reports)
        brokers_changed = self.hub.subscribe((BROKER_CLUSTER, self.events_broker_cluster))
        with self.store.listening(sweeper.changed), brokers_changed as changed:
            while True:
                changed.clear()
                brokers = events_brokers(self.store, self.events_broker_cluster)
                if brokers is not None:
                    moved = events_moved(self.store, self.hub, self.events_broker_cluster, brokers)
                    await first_of(self._read(brokers, sweeper), moved)
                else:
                    await changed.wait()

    async def _read(self, brokers: EventsBrokers, sweeper: Sweeper) -> None:
        servers, properties = brokers.bootstrap_servers, brokers.client_properties
        async with ReportPublisher(servers, "state", properties) as tombstones:
            publish = partial(_publish, tombstones)
            await supervise(partial(self._fold, brokers, publish), partial(_sweep, sweeper, publish))

    async def _fold(self, brokers: EventsBrokers, publish: Callable[[Iterable[Fact]], None]) -> None:
        async for fact in consume(brokers.bootstrap_servers, REPORT_TOPICS, brokers.client_properties):
            publish(Fact(COPY_RUN_REPORTS, uid, None) for uid in self.reports.fold(fact))


async def _sweep(sweeper: Sweeper, publish: Callable[[Iterable[Fact]], None]) -> None:
    while True:
        await asyncio.sleep(SWEEP_SECONDS)
        publish(await sweeper.sweep())


def _publish(publisher: ReportPublisher, facts: Iterable[Fact]) -> None:
    for fact in facts:
        publisher.publish(fact.topic, fact.key, fact.value)
