"""Serves watches of connectors from the state service's reports, and from workers' answers for
clusters without them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorChanges, ConnectorName, UnreachableClusters
from keelman.api.connect.v1.connector_report_service_pb2 import WatchConnectorReportsRequest
from keelman.api.connect.v1.connector_service_pb2 import WatchConnectorsRequest
from keelman.gateway.listing import hidden
from keelman.gateway.state import State
from keelman.model.errors import Unavailable
from keelman.workers.rest.connectors import RestConnectors

ASK_SECONDS = 1.0
"""The pause between two requests to workers that report nothing."""


@dataclass(slots=True)
class Asked:
    """The worker clusters without reports, each with its connectors as they were sent last; None before
    the first time."""

    connectors: dict[str, dict[str, Connector] | None] = field(default_factory=dict)
    unreachable: dict[str, str] | None = None
    """The reasons of the unreachable clusters, as they were sent last; None before the first time."""

    def ask(self, clusters: list[str]) -> None:
        """Sets the worker clusters that are called from now on."""
        self.connectors = {cluster: self.connectors.get(cluster) for cluster in clusters}

    def still_unreachable(self) -> UnreachableClusters | None:
        """Returns the unreachable clusters that are left after some are not called any more; None for no change.

        With no cluster to call, the first result is not None: the watcher may know unreachable clusters from an
        earlier stream."""
        if self.unreachable is None and self.connectors:
            return None  # their first answers tell it
        still = {name: reason for name, reason in (self.unreachable or {}).items() if name in self.connectors}
        if still == self.unreachable:
            return None
        self.unreachable = still
        return UnreachableClusters(reasons=still)

    def news(
        self, answered: Mapping[str, dict[str, Connector]], unreachable: Mapping[str, str]
    ) -> ConnectorChanges | None:
        """Returns the changes in worker clusters' answers, and the reasons of unreachable clusters; None for no change.

        An unreachable cluster gets no other change. Clusters that are no longer called are skipped: their reports have
        come meanwhile."""
        changes = ConnectorChanges()
        reasons = {name: reason for name, reason in unreachable.items() if name in self.connectors}
        if reasons != self.unreachable:
            self.unreachable = reasons
            changes.unreachable.CopyFrom(UnreachableClusters(reasons=reasons))
        for cluster, now in sorted(answered.items()):
            if cluster not in self.connectors:
                continue
            before = self.connectors[cluster]
            if before is None:
                changes.worker_clusters.append(cluster)
                before = {}
            changes.connectors.extend(
                connector for name, connector in sorted(now.items()) if before.get(name) != connector
            )
            gone = sorted(before.keys() - now.keys())
            changes.gone.extend(ConnectorName(worker_cluster=cluster, name=name) for name in gone)
            self.connectors[cluster] = now
        return changes if changes.ByteSize() else None


class ConnectorWatch:
    """Answers WatchConnectors."""

    def __init__(self, state: State, connectors: RestConnectors) -> None:
        self._state = state
        self._connectors = connectors

    async def changes(self, request: WatchConnectorsRequest) -> AsyncGenerator[ConnectorChanges, None]:
        """Yields the present connectors, then each change, until the state service ends.
        Raises NotFound, Unavailable."""
        waiting, revision = Asked(), request.from_revision
        reports = self._state.watched_connectors(
            WatchConnectorReportsRequest(
                worker_cluster=request.worker_cluster, name=request.name, from_revision=request.from_revision
            )
        )
        coming: asyncio.Future[Any] = asyncio.ensure_future(anext(reports, None))
        asking: asyncio.Future[Any] = asyncio.get_running_loop().create_future()  # never done
        is_whole = False  # workers' answers are sent after all reports, never between them
        try:
            while True:
                waited_for = {coming, asking} if is_whole else {coming}
                await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    answer = coming.result()
                    if answer is None:
                        raise Unavailable("the state service has ended the watch: watch again", reason="STOPPING")
                    coming = asyncio.ensure_future(anext(reports, None))
                    if answer.HasField("unreported"):
                        waiting.ask(list(answer.unreported.worker_clusters))
                        asking.cancel()
                        asking = asyncio.ensure_future(self._ask(list(waiting.connectors), request.name, at_once=True))
                    changes = answer.changes
                    if answer.HasField("changes"):
                        self._spare(changes, waiting)
                        is_whole, revision = not changes.more, changes.revision or revision
                    still = waiting.still_unreachable() if is_whole else None
                    if still is not None:
                        changes.unreachable.CopyFrom(still)
                        changes.revision = revision
                    if answer.HasField("changes"):
                        yield changes
                else:
                    connectors, unreachable = asking.result()
                    asking = asyncio.ensure_future(self._ask(list(waiting.connectors), request.name))
                    if (news := waiting.news(connectors, unreachable)) is not None:
                        news.revision = revision
                        yield news
        finally:
            coming.cancel()
            asking.cancel()
            await asyncio.gather(coming, asking, return_exceptions=True)
            await reports.aclose()

    @staticmethod
    def _spare(changes: ConnectorChanges, waiting: Asked) -> None:
        """Removes from a change the clusters that it lists as gone for lack of reports: their workers
        are called first."""
        clusters = [cluster for cluster in changes.worker_clusters if cluster not in waiting.connectors]
        if len(clusters) < len(changes.worker_clusters):
            del changes.worker_clusters[:]
            changes.worker_clusters.extend(clusters)

    async def _ask(
        self, clusters: list[str], name: str, *, at_once: bool = False
    ) -> tuple[dict[str, dict[str, Connector]], dict[str, str]]:
        """Returns the connectors of the worker clusters that answer, by name; and the reasons of the others."""
        if not clusters:
            await asyncio.Event().wait()
        if not at_once:
            await asyncio.sleep(ASK_SECONDS)
        answered = await self._connectors.all(clusters)
        connectors: dict[str, dict[str, Connector]] = {
            cluster: {} for cluster in clusters if cluster not in answered.unreachable
        }
        for connector in answered.connectors:
            if name in ("", connector.name):
                connectors[connector.worker_cluster][connector.name] = hidden(connector)
        return connectors, answered.unreachable
