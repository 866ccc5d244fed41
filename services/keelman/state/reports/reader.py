"""Reads the topics of reports, and drops with a tombstone what means nothing any more."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keelman.kafka.feed import CONNECTOR_REPORTS, COPY_RUN_REPORTS, REPORT_TOPICS, ReportPublisher, consume
from keelman.runtime.supervise import first_of
from keelman.state.events.brokers import EventsBrokers, events_brokers, events_moved
from keelman.state.hub import Hub
from keelman.state.reports.reports import Reports
from keelman.state.snapshot import BROKER_CLUSTER

if TYPE_CHECKING:
    from keelman.state.store import Store

SWEEP_SECONDS = 60.0


@dataclass(slots=True)
class Reader:
    """Keeps the reports at what the topics say."""

    store: Store
    hub: Hub
    reports: Reports
    events_broker_cluster: str

    async def run(self) -> None:
        """Runs until cancelled; waits without harm while there is no broker."""
        with self.hub.subscribe((BROKER_CLUSTER, self.events_broker_cluster)) as changed:
            while True:
                changed.clear()
                brokers = events_brokers(self.store, self.events_broker_cluster)
                if brokers is not None:
                    moved = events_moved(self.store, self.hub, self.events_broker_cluster, brokers)
                    await first_of(self._read(brokers), moved)
                else:
                    await changed.wait()

    async def _read(self, brokers: EventsBrokers) -> None:
        servers, properties = brokers.bootstrap_servers, brokers.client_properties
        async with ReportPublisher(servers, "state", properties) as tombstones:
            swept = time.monotonic()
            async for fact in consume(servers, REPORT_TOPICS, properties):
                for uid in self.reports.fold(fact):
                    tombstones.publish(COPY_RUN_REPORTS, uid, None)
                if time.monotonic() - swept >= SWEEP_SECONDS:
                    swept = time.monotonic()
                    for key in self.reports.connectors.sweep(self.store.snapshot.worker_clusters):
                        tombstones.publish(CONNECTOR_REPORTS, key, None)
