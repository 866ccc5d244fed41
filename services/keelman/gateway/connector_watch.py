"""Serves watches of connectors: the state service's reports, and workers' answers where there are none."""

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
from keelman.workers.rest.connectors import Connectors

ASK_SECONDS = 1.0
"""So long workers that report nothing are left in peace."""


@dataclass(slots=True)
class Asked:
    """The worker clusters that are not reported, and what of their connectors was sent last; None before the first
    time."""

    connectors: dict[str, dict[str, Connector] | None] = field(default_factory=dict)
    unreachable: dict[str, str] | None = None
    """Why some do not answer, as it was sent last; None before the first time."""

    def ask(self, clusters: list[str]) -> None:
        """These are all that are to be asked from now on."""
        self.connectors = {cluster: self.connectors.get(cluster) for cluster in clusters}

    def still_unreachable(self) -> UnreachableClusters | None:
        """What is to be sent since some are not asked any more, or none at all while who watches may know of some by
        another stream; None for nothing."""
        if self.unreachable is None and self.connectors:
            return None  # their first answers say it
        still = {name: why for name, why in (self.unreachable or {}).items() if name in self.connectors}
        if still == self.unreachable:
            return None
        self.unreachable = still
        return UnreachableClusters(reasons=still)

    def news(
        self, answered: Mapping[str, dict[str, Connector]], unreachable: Mapping[str, str]
    ) -> ConnectorChanges | None:
        """What is new in the answers of worker clusters, by name, and why some gave none; None for nothing. Of those
        nothing else is said. Those that are not asked any more meanwhile are known by their reports."""
        changes = ConnectorChanges()
        reasons = {name: why for name, why in unreachable.items() if name in self.connectors}
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
            changes.connectors.extend(one for name, one in sorted(now.items()) if before.get(name) != one)
            gone = sorted(before.keys() - now.keys())
            changes.gone.extend(ConnectorName(worker_cluster=cluster, name=name) for name in gone)
            self.connectors[cluster] = now
        return changes if changes.ByteSize() else None


class ConnectorWatch:
    """Answers WatchConnectors."""

    def __init__(self, state: State, connectors: Connectors) -> None:
        self._state = state
        self._connectors = connectors

    async def changes(self, request: WatchConnectorsRequest) -> AsyncGenerator[ConnectorChanges, None]:
        """What there is, and each change, until the state service ends. Raises NotFound, Unavailable."""
        asked, revision = Asked(), request.from_revision
        reports = self._state.watched_connectors(
            WatchConnectorReportsRequest(
                worker_cluster=request.worker_cluster, name=request.name, from_revision=request.from_revision
            )
        )
        coming: asyncio.Future[Any] = asyncio.ensure_future(anext(reports, None))
        asking: asyncio.Future[Any] = asyncio.get_running_loop().create_future()  # is never done
        is_whole = False  # what workers answer comes behind what is reported, and not within
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
                        asked.ask(list(answer.unreported.worker_clusters))
                        asking.cancel()
                        asking = asyncio.ensure_future(self._ask(list(asked.connectors), request.name, at_once=True))
                    changes = answer.changes
                    if answer.HasField("changes"):
                        self._spare(changes, asked)
                        is_whole, revision = not changes.more, changes.revision or revision
                    still = asked.still_unreachable() if is_whole else None
                    if still is not None:
                        changes.unreachable.CopyFrom(still)
                        changes.revision = revision
                    if answer.HasField("changes"):
                        yield changes
                else:
                    found, unreachable = asking.result()
                    asking = asyncio.ensure_future(self._ask(list(asked.connectors), request.name))
                    if (news := asked.news(found, unreachable)) is not None:
                        news.revision = revision
                        yield news
        finally:
            coming.cancel()
            asking.cancel()
            await asyncio.gather(coming, asking, return_exceptions=True)
            await reports.aclose()

    @staticmethod
    def _spare(changes: ConnectorChanges, asked: Asked) -> None:
        """Takes out of a change those that it says to be gone since nothing is reported: their workers are asked
        first."""
        kept = [cluster for cluster in changes.worker_clusters if cluster not in asked.connectors]
        if len(kept) < len(changes.worker_clusters):
            del changes.worker_clusters[:]
            changes.worker_clusters.extend(kept)

    async def _ask(
        self, clusters: list[str], name: str, *, at_once: bool = False
    ) -> tuple[dict[str, dict[str, Connector]], dict[str, str]]:
        """The connectors of the worker clusters that answer, by name; and why others do not."""
        if not clusters:
            await asyncio.Event().wait()
        if not at_once:
            await asyncio.sleep(ASK_SECONDS)
        answered = await self._connectors.all(clusters)
        found: dict[str, dict[str, Connector]] = {
            cluster: {} for cluster in clusters if cluster not in answered.unreachable
        }
        for one in answered.connectors:
            if name in ("", one.name):
                found[one.worker_cluster][one.name] = hidden(one)
        return found, answered.unreachable
