"""Keeps the changes of the connectors that lists show, in order: for watches that continue where others ended.

It begins with the first request. Revisions belong to one process: their number begins with bits that no other process
has, so that a client with another process's revision gets everything.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorChanges, ConnectorName

PART = 500
PART_BYTES = 1 << 20  # a client with default settings accepts messages of up to 4 MiB
MAX_GONE = 1000
"""The number of deleted connectors remembered per worker cluster, and of worker clusters remembered after they are
hidden."""
_PROCESSES = 30  # bits of a revision


@dataclass(slots=True)
class _Cluster:
    """The connectors of a worker cluster. Each number is the change that brought its entry, `begun` the change that
    brought the whole cluster; mappings are in the order of changes."""

    begun: int
    shown: bool = True
    connectors: dict[str, tuple[int, Connector]] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class FeedChanges:
    """The changes after a revision. `clusters` are those whose connectors are all included."""

    revision: int
    snapshot: bool = False
    clusters: list[str] = field(default_factory=list)
    connectors: list[Connector] = field(default_factory=list)
    gone: list[ConnectorName] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.snapshot or self.clusters or self.connectors or self.gone)

    def parts(self) -> Iterator[ConnectorChanges]:
        """Yields the changes as messages small enough for a client; the last one has the revision."""
        part, size = ConnectorChanges(snapshot=self.snapshot, worker_clusters=self.clusters, gone=self.gone), 0
        for connector in self.connectors:
            size += connector.ByteSize()
            if part.connectors and (len(part.connectors) == PART or size > PART_BYTES):
                part.more = True
                yield part
                part, size = ConnectorChanges(), connector.ByteSize()
            part.connectors.append(connector)
        part.revision = self.revision
        yield part


class ConnectorFeed:
    """Numbers the changes of reported connectors. A change costs as much as changed, a read as much as is new to its
    reader."""

    def __init__(self) -> None:
        self._first = (1 << _PROCESSES | secrets.randbits(_PROCESSES)) << 32
        self._now = self._first + 1
        self._floor = self._now
        """A reader with a lower revision gets everything."""
        self._clusters: dict[str, _Cluster] = {}
        """In the order of their last changes."""

    @property
    def shown(self) -> set[str]:
        """The worker clusters whose connectors are shown."""
        return {name for name, cluster in self._clusters.items() if cluster.shown}

    def show(self, cluster: str, connectors: Mapping[str, Connector]) -> None:
        """Shows a worker cluster from now on, with these connectors by name."""
        self._now += 1
        shown = {name: (self._now, connector) for name, connector in connectors.items()}
        self._touch(cluster, _Cluster(self._now, connectors=shown))

    def hide(self, cluster: str) -> None:
        """Hides a worker cluster."""
        if self._shown(cluster) is not None:
            self.end(cluster)

    def end(self, cluster: str) -> None:
        """Hides a worker cluster even if it was never shown: watches may know it from its workers."""
        self._now += 1
        self._touch(cluster, _Cluster(self._now, shown=False))
        hidden = [name for name, cluster in self._clusters.items() if not cluster.shown]
        for name in hidden[: max(0, len(hidden) - MAX_GONE)]:
            self._floor = max(self._floor, self._clusters.pop(name).begun)

    def put(self, connector: Connector) -> None:
        """Adds a connector, or replaces it if it has changed."""
        entry = self._shown(connector.worker_cluster)
        if entry is None or entry.connectors.get(connector.name, (0, None))[1] == connector:
            return
        self._now += 1
        entry.connectors.pop(connector.name, None)
        entry.connectors[connector.name] = self._now, connector
        entry.gone.pop(connector.name, None)
        self._touch(connector.worker_cluster, entry)

    def drop(self, cluster: str, name: str) -> None:
        """Removes a connector."""
        entry = self._shown(cluster)
        if entry is None or entry.connectors.pop(name, None) is None:
            return
        self._now += 1
        entry.gone[name] = self._now
        if len(entry.gone) > MAX_GONE:  # readers from before the oldest get the whole cluster
            entry.begun = entry.gone.pop(next(iter(entry.gone)))
        self._touch(cluster, entry)

    def become(self, cluster: str, connectors: Mapping[str, Connector]) -> None:
        """Replaces the connectors of a worker cluster by these, by name."""
        entry = self._shown(cluster)
        if entry is None:
            return
        for name in entry.connectors.keys() - connectors.keys():
            self.drop(cluster, name)
        for connector in connectors.values():
            self.put(connector)

    def after(self, revision: int, cluster: str = "", name: str = "") -> FeedChanges:
        """Returns the changes after a revision: of one worker cluster, and of one name, if they are given."""
        news = FeedChanges(self._now, snapshot=not self._floor <= revision <= self._now)
        for name_of_cluster in reversed(self._clusters):
            entry = self._clusters[name_of_cluster]
            if not news.snapshot and self._changed(entry) <= revision:
                break
            if cluster in ("", name_of_cluster):
                _collect(news, name_of_cluster, entry, revision, name)
        return news

    def _shown(self, cluster: str) -> _Cluster | None:
        entry = self._clusters.get(cluster)
        return entry if entry is not None and entry.shown else None

    def _touch(self, name: str, cluster: _Cluster) -> None:
        self._clusters.pop(name, None)
        self._clusters[name] = cluster

    @staticmethod
    def _changed(cluster: _Cluster) -> int:
        """Returns the number of the cluster's last change."""
        newest = next(reversed(cluster.connectors.values()), (0, None))[0]
        return max(cluster.begun, newest, next(reversed(cluster.gone.values()), 0))


def _collect(news: FeedChanges, cluster: str, entry: _Cluster, revision: int, name: str) -> None:
    whole = news.snapshot or entry.begun > revision
    if whole and not news.snapshot:
        news.clusters.append(cluster)
    changed: Iterable[tuple[int, Connector]] = reversed(entry.connectors.values())
    for number, connector in changed:
        if not whole and number <= revision:
            break
        if name in ("", connector.name):
            news.connectors.append(connector)
    if not whole:
        for gone, number in reversed(entry.gone.items()):
            if number <= revision:
                break
            if name in ("", gone):
                news.gone.append(ConnectorName(worker_cluster=cluster, name=gone))
