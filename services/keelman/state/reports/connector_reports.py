"""Keeps the connectors that workers have reported in memory, for lists: no list calls a worker.

A leader reports in rounds: all connectors of its group, a record that marks these as all, then changes. Reports of any
round but the last complete one are not shown.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorState
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport
from keelman.rpc.pages import connector_key, key_of, key_parts, page_limit, token_for
from keelman.state.reports.connector_feed import ConnectorFeed
from keelman.state.resources.hub import Hub
from keelman.workers.connector_messages import is_in

SILENT_SECONDS = 20.0  # a worker reports every 5 s


@dataclass(slots=True)
class Round:
    """The connectors of one round by name."""

    name: str
    connectors: dict[str, Connector] = field(default_factory=dict)
    _names: list[str] | None = None

    def put(self, connector: Connector) -> None:
        """Stores a report."""
        if connector.name not in self.connectors:
            self._names = None
        self.connectors[connector.name] = connector

    def drop(self, name: str) -> None:
        """Removes a deleted connector."""
        if self.connectors.pop(name, None) is not None:
            self._names = None

    def after(self, name: str) -> Iterator[Connector]:
        """Yields the connectors after a name, in order."""
        if self._names is None:
            self._names = sorted(self.connectors)
        return (self.connectors[name] for name in self._names[bisect_right(self._names, name) if name else 0 :])


@dataclass(slots=True)
class ConnectorReports:
    """Keeps the reports of each worker cluster's connectors."""

    clock: Callable[[], float] = time.monotonic
    hub: Hub = field(default_factory=Hub)
    """Woken by each report of a connector."""
    feed: ConnectorFeed = field(default_factory=ConnectorFeed)
    _whole: dict[str, Round] = field(default_factory=dict)
    _coming: dict[str, Round] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)
    _keys: dict[str, set[str]] = field(default_factory=dict)
    """All keys of the topic that have no tombstone, by worker cluster."""
    _stale: set[str] = field(default_factory=set)
    _unreported: set[str] = field(default_factory=set)
    """Worker clusters that were to run but not reported, at the last call of `show`."""

    def hear(self, worker_cluster: str) -> None:
        """Notes that a worker of the cluster has reported anything."""
        self._heard[worker_cluster] = self.clock()

    def fold(self, report: ConnectorReport, key: str) -> None:
        """Stores a connector's report."""
        connector = report.connector
        self._keys.setdefault(connector.worker_cluster, set()).add(key)
        whole = self._whole.get(connector.worker_cluster)
        if whole is not None and whole.name == report.round:
            whole.put(connector)
            self.feed.put(connector)
            self.hub.wake()
            return
        coming = self._coming.get(connector.worker_cluster)
        if coming is None or coming.name != report.round:
            coming = self._coming[connector.worker_cluster] = Round(report.round)
        coming.put(connector)

    def close(self, report: ConnectorsReport, key: str) -> None:
        """Completes a round: it replaces the one before."""
        cluster = report.worker_cluster
        self._keys.setdefault(cluster, set()).add(key)
        whole, coming = self._whole.get(cluster), self._coming.pop(cluster, None)
        if whole is not None and whole.name == report.round:
            return
        now = coming if coming is not None and coming.name == report.round else Round(report.round)
        self._whole[cluster] = now
        self.feed.become(cluster, now.connectors)
        self.hub.wake()

    def drop(self, key: str) -> None:
        """Handles a key's tombstone."""
        cluster, slash, name = key.partition("/")
        self._keys.get(cluster, set()).discard(key)
        for rounds in (self._whole, self._coming):
            if slash and cluster in rounds:
                rounds[cluster].drop(name)
        self.feed.drop(cluster, name)
        self.hub.wake()

    def sweep(self, gone: Collection[str]) -> list[str]:
        """Forgets outdated reports and returns their keys; call it now and then with the worker clusters that are gone.

        Outdated are all reports of those, and the connectors that no round contains, if they were so at the last sweep
        too.
        """
        keys = [key for cluster in gone for key in self._keys.get(cluster, ())]
        for cluster in gone:
            self._keys.pop(cluster, None)
            self._whole.pop(cluster, None)
            self._coming.pop(cluster, None)
            self._heard.pop(cluster, None)
            self.feed.hide(cluster)
        stale: set[str] = set()
        for cluster in self._keys.keys() & self._whole.keys():
            names = {f"{cluster}/{name}" for round_ in self._rounds(cluster) for name in round_.connectors} | {cluster}
            stale |= self._keys[cluster] - names
        again, self._stale = stale & self._stale, stale
        return sorted([*keys, *again])

    def is_deleted(self, cluster: str, connector: str) -> bool:
        """Returns whether a worker cluster whose connectors are all known has none of this name."""
        return cluster in self._whole and not any(connector in round_.connectors for round_ in self._rounds(cluster))

    def _rounds(self, cluster: str) -> list[Round]:
        return [rounds[cluster] for rounds in (self._whole, self._coming) if cluster in rounds]

    def is_silent(self, cluster: str) -> bool:
        """Returns whether none of its workers has reported anything of late."""
        return self.silence(cluster) > SILENT_SECONDS

    def reported(self, cluster: str) -> bool:
        """Returns whether the reports of its connectors are complete, and its workers still report."""
        return cluster in self._whole and not self.is_silent(cluster)

    def silence(self, cluster: str) -> float:
        """Returns the seconds since any of its workers reported anything; infinite if none did since this process
        started."""
        return self.clock() - self._heard.get(cluster, float("-inf"))

    def one(self, cluster: str, name: str) -> Connector | None:
        """Returns the last report of a connector; None if this name is unknown."""
        whole = self._whole.get(cluster)
        return None if whole is None else whole.connectors.get(name)

    def of(self, cluster: str) -> Collection[Connector] | None:
        """Returns all connectors of a worker cluster; None while their reports are incomplete."""
        return self._whole[cluster].connectors.values() if self.reported(cluster) else None

    def show(self, running: Iterable[str]) -> list[str]:
        """Makes the feed show the reported ones of these worker clusters, which are all that shall run, with their
        connectors; returns the others."""
        reported, unreported = set[str](), list[str]()
        for cluster in running:
            if self.reported(cluster):
                reported.add(cluster)
            else:
                unreported.append(cluster)
        shown = self.feed.shown
        for cluster in shown - reported:
            self.feed.hide(cluster)
        for cluster in self._unreported.difference(reported, unreported):
            self.feed.end(cluster)
        self._unreported = set(unreported)
        for cluster in sorted(reported - shown):
            self.feed.show(cluster, self._whole[cluster].connectors)
        return unreported

    def named(self, names: Iterable[str], clusters: Iterable[str], state: ConnectorState.ValueType) -> list[Connector]:
        """Returns the reported ones of these connectors, each named as demo/lines, of these worker clusters, in
        order."""
        requested = {(cluster, name) for cluster, _, name in (key.partition("/") for key in names)}
        among = set(clusters)
        connectors = (self.one(cluster, name) for cluster, name in sorted(requested) if cluster in among)
        return [connector for connector in connectors if connector is not None and is_in(connector, state)]

    def page(
        self, clusters: Iterable[str], state: ConnectorState.ValueType, page_size: int, page_token: str
    ) -> tuple[list[Connector], str]:
        """Returns a page of the connectors of these worker clusters, which are in order; and the token of the next."""
        limit, (after, name) = page_limit(page_size), key_parts(key_of(page_token))
        connectors: list[Connector] = []
        for cluster in clusters:
            if cluster < after or cluster not in self._whole:
                continue
            for connector in self._whole[cluster].after(name if cluster == after else ""):
                if not is_in(connector, state):
                    continue
                if len(connectors) == limit:
                    return connectors, token_for(connector_key(connectors[-1].worker_cluster, connectors[-1].name))
                connectors.append(connector)
        return connectors, ""
