"""Keeps in memory which connectors workers have reported, for lists: no worker is asked for one.

A leader reports in rounds: all connectors of its group, a record that says that these were all, then changes. What
belongs to another round than the last whole one is not shown.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import CONNECTOR_STATE_UNSPECIFIED, Connector, ConnectorState
from keelman.api.event.v1.report_pb2 import ConnectorReport, ConnectorsReport
from keelman.rpc.pages import key_of, page_limit, token_for

SILENT_SECONDS = 20.0  # a worker reports every 5 s


@dataclass(slots=True)
class Round:
    """The connectors of one round by name."""

    name: str
    connectors: dict[str, Connector] = field(default_factory=dict)
    _names: list[str] | None = None

    def put(self, connector: Connector) -> None:
        """Takes in a report."""
        if connector.name not in self.connectors:
            self._names = None
        self.connectors[connector.name] = connector

    def drop(self, name: str) -> None:
        """It was deleted."""
        if self.connectors.pop(name, None) is not None:
            self._names = None

    def after(self, name: str) -> Iterator[Connector]:
        """Those behind a name, in order."""
        if self._names is None:
            self._names = sorted(self.connectors)
        return (self.connectors[one] for one in self._names[bisect_right(self._names, name) if name else 0 :])


@dataclass(slots=True)
class ConnectorReports:
    """What was reported of each worker cluster's connectors."""

    clock: Callable[[], float] = time.monotonic
    _whole: dict[str, Round] = field(default_factory=dict)
    _coming: dict[str, Round] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)
    _keys: dict[str, set[str]] = field(default_factory=dict)
    """All keys of the topic that have no tombstone, by worker cluster."""
    _stale: set[str] = field(default_factory=set)
    _clusters: set[str] = field(default_factory=set)

    def hear(self, worker_cluster: str) -> None:
        """One of its workers has reported anything."""
        self._heard[worker_cluster] = self.clock()

    def fold(self, report: ConnectorReport, key: str) -> None:
        """Takes a connector's report in."""
        connector = report.connector
        self._keys.setdefault(connector.worker_cluster, set()).add(key)
        whole = self._whole.get(connector.worker_cluster)
        if whole is not None and whole.name == report.round:
            whole.put(connector)
            return
        coming = self._coming.get(connector.worker_cluster)
        if coming is None or coming.name != report.round:
            coming = self._coming[connector.worker_cluster] = Round(report.round)
        coming.put(connector)

    def close(self, report: ConnectorsReport, key: str) -> None:
        """All connectors of a round have been reported: it takes the place of the one before."""
        cluster = report.worker_cluster
        self._keys.setdefault(cluster, set()).add(key)
        whole, coming = self._whole.get(cluster), self._coming.pop(cluster, None)
        if whole is not None and whole.name == report.round:
            return
        self._whole[cluster] = coming if coming is not None and coming.name == report.round else Round(report.round)

    def drop(self, key: str) -> None:
        """A key's tombstone."""
        cluster, slash, name = key.partition("/")
        self._keys.get(cluster, set()).discard(key)
        for rounds in (self._whole, self._coming):
            if slash and cluster in rounds:
                rounds[cluster].drop(name)

    def sweep(self, clusters: Iterable[str]) -> list[str]:
        """The keys that mean nothing any more, to be called now and then with the worker clusters that there are.

        Those of connectors that no round has, once they were so at the last sweep too; and those of worker clusters
        that are gone.
        """
        present = set(clusters)
        self._clusters |= present
        gone: list[str] = []
        stale: set[str] = set()
        for cluster, keys in list(self._keys.items()):
            if cluster in self._clusters and cluster not in present:
                gone += keys
                for kept in (self._keys, self._whole, self._coming, self._heard):
                    kept.pop(cluster, None)
            elif cluster in self._whole:
                rounds = [r for r in (self._whole[cluster], self._coming.get(cluster)) if r is not None]
                known = {f"{cluster}/{name}" for r in rounds for name in r.connectors} | {cluster}
                stale |= keys - known
        again, self._stale = stale & self._stale, stale
        self._clusters &= present
        return sorted([*gone, *again])

    def reported(self, cluster: str) -> bool:
        """Whether what is known of its connectors is whole, and its workers still report."""
        silent = self.clock() - self._heard.get(cluster, float("-inf"))
        return cluster in self._whole and silent <= SILENT_SECONDS

    def one(self, cluster: str, name: str) -> Connector | None:
        """A connector as it was reported last; None where there is none of this name."""
        whole = self._whole.get(cluster)
        return None if whole is None else whole.connectors.get(name)

    def of(self, cluster: str) -> Collection[Connector] | None:
        """All connectors of a worker cluster; None while what is known of them is not whole."""
        return self._whole[cluster].connectors.values() if self.reported(cluster) else None

    def page(
        self, clusters: Iterable[str], state: ConnectorState.ValueType, page_size: int, page_token: str
    ) -> tuple[list[Connector], str]:
        """A page of the connectors of these worker clusters, which are in order; and the token of the next."""
        limit, (after, _, name) = page_limit(page_size), key_of(page_token).partition("\0")
        found: list[Connector] = []
        for cluster in clusters:
            if cluster < after or cluster not in self._whole:
                continue
            for one in self._whole[cluster].after(name if cluster == after else ""):
                if state != CONNECTOR_STATE_UNSPECIFIED and state not in (one.state, *(t.state for t in one.tasks)):
                    continue
                if len(found) == limit:
                    return found, token_for(f"{found[-1].worker_cluster}\0{found[-1].name}")
                found.append(one)
        return found, ""
