"""Reports the connectors of a group, by its leader: all of them once, then changes.

A round begins when this worker comes to lead, and again now and then, which mends reports that got lost on the way.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator

from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1 import connector_pb2 as pb
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport, Report
from keelman.connect.config.secret_keys import shown
from keelman.kafka.feed import CONNECTOR_REPORTS, ReportPublisher
from keelman.runtime.supervise import wait_or_stop
from keelman.worker.connector_facts import connector_type
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_records import NOT_KNOWN
from keelman.worker.storage.status_state import Status
from keelman.worker.storage.store import WorkerStore
from keelman.workers.connector_messages import TYPES, add_notes

LOOK_SECONDS = 2.0  # without news: another worker may lead by now
PAUSE_SECONDS = 0.2  # between two looks: changes of that time are reported once
ROUND_SECONDS = 600.0
SLICE = 50
TRACE = 4_000  # characters of a trace


class ConnectorReporter:
    """Reports connectors, and remembers the reports of the present round. `publish` takes a key and a value, None for a
    tombstone."""

    def __init__(
        self, store: WorkerStore, publish: Callable[[str, bytes | None], None], *, worker_cluster: str, worker: str
    ) -> None:
        self._store = store
        self._publish = publish
        self._cluster = worker_cluster
        self._worker = worker
        self._round = ""
        self._begun = 0.0
        self._reported: dict[str, pb.Connector] = {}
        self._types: dict[str, str] = {}
        self.news = asyncio.Event()
        """Set when there may be something to report; the reader clears it."""
        self._changes = ChangeSet(lambda: store.config.connectors, on_more=self.news.set)
        store.change_sets.append(self._changes)
        store.status_change_sets.append(self._changes)

    def end(self) -> None:
        """Ends the round: this worker does not lead now."""
        self._round = ""

    async def look(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Reports news, in slices; everything where a round is due."""
        if not self._round or clock() - self._begun >= ROUND_SECONDS:
            self._round, self._begun = uuid.uuid4().hex, clock()
            before, self._reported = self._reported, {}
            self._types.clear()  # plugins come and go
            await self._report_all(list(self._store.config.connectors))
            for gone in before.keys() - self._store.config.connectors.keys():
                self._publish(self._key(gone), None)
            about = ConnectorsReport(
                worker_cluster=self._cluster, round=self._round, connectors=len(self._store.config.connectors)
            )
            self._publish(self._cluster, self._report(self._cluster, connectors=about))
        names = self._changes.take()
        while names:
            await self._report_all(names)
            names = self._changes.take() if self._changes.more else set()

    async def _report_all(self, names: list[str] | set[str]) -> None:
        for number, name in enumerate(names):
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            self._report_one(name)

    def _report_one(self, name: str) -> None:
        connector = self.connector(name)
        if connector is None:
            if self._reported.pop(name, None) is not None:
                self._publish(self._key(name), None)
        elif self._reported.get(name) != connector:
            self._reported[name] = connector
            about = ConnectorReport(connector=connector, round=self._round)
            self._publish(self._key(name), self._report(self._key(name), connector=about))

    def connector(self, name: str) -> pb.Connector | None:
        """Returns a connector as lists show it; None for an unknown one."""
        config = self._store.config.connectors.get(name)
        if config is None:
            return None
        own, tasks = self._store.statuses.of(name)
        if config.get("connector.class", "") not in self._types:
            self._types[config.get("connector.class", "")] = connector_type(config)
        connector = pb.Connector(
            worker_cluster=self._cluster,
            name=name,
            type=TYPES.get(self._types[config.get("connector.class", "")], pb.CONNECTOR_TYPE_UNKNOWN),
            config=shown(config),
            state=_state(own),
            tasks=self._tasks(name, tasks),
            uid=self._store.config.identities.get(name, NOT_KNOWN).uid,
        )
        if own is not None:
            connector.worker_id, connector.trace = own.worker_id, (own.trace or "")[:TRACE]
        return connector

    def _tasks(self, name: str, numbered: list[tuple[int, Status]]) -> Iterator[pb.ConnectorTask]:
        """Yields tasks with a status; before there is any, the configured ones, as in REST's answers."""
        for number, status in numbered:
            trace = (status.trace or "")[:TRACE]
            yield add_notes(
                pb.ConnectorTask(task=number, state=_state(status), worker_id=status.worker_id, trace=trace),
                status.more,
            )
        if not numbered:
            for number in range(len(self._store.config.tasks.get(name, ()))):
                yield pb.ConnectorTask(task=number, state=pb.CONNECTOR_STATE_UNASSIGNED)

    def _key(self, name: str) -> str:
        return f"{self._cluster}/{name}"

    def _report(self, name: str, **subject: ConnectorReport | ConnectorsReport) -> bytes:
        now = Timestamp()
        now.GetCurrentTime()
        return Report(time=now, reporter=self._worker, name=name, **subject).SerializeToString()  # type: ignore[arg-type]


def _state(status: Status | None) -> pb.ConnectorState.ValueType:
    if status is None:
        return pb.CONNECTOR_STATE_UNASSIGNED
    return pb.ConnectorState.Value(f"CONNECTOR_STATE_{status.state}")


async def report_connectors(
    store: WorkerStore, leads: Callable[[], bool], publisher: ReportPublisher, *, worker_cluster: str, worker: str
) -> None:
    """Runs until cancelled: reports while this worker leads."""

    def publish(key: str, value: bytes | None) -> None:
        publisher.publish(CONNECTOR_REPORTS, key, value)

    reports = ConnectorReporter(store, publish, worker_cluster=worker_cluster, worker=worker)
    while True:
        if leads():
            await reports.look()
        else:
            reports.end()
        await asyncio.sleep(PAUSE_SECONDS)
        await wait_or_stop(reports.news, LOOK_SECONDS)
        reports.news.clear()
