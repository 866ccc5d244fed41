"""Keeps the changes of the connectors that lists show, in order: for watches, which go on from where others ended.

It begins when somebody asks for the first time. A revision is this process's own: its number begins with one that no
other has, so that whoever comes with another process's revision gets everything.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorChanges, ConnectorName

PART = 500
PART_BYTES = 1 << 20  # a client that sets nothing takes messages of up to 4 MiB
MAX_GONE = 1000
"""So many deleted connectors of a worker cluster are remembered, and so many worker clusters that are not shown."""
_PROCESSES = 30  # bits of a revision


@dataclass(slots=True)
class _Cluster:
    """The connectors of a worker cluster. Each number says with which change it came, `begun` with which all of them
    did; mappings have the last change last."""

    begun: int
    shown: bool = True
    connectors: dict[str, tuple[int, Connector]] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class FeedChanges:
    """The changes after a revision. `clusters` are those of which all connectors are in it."""

    revision: int
    snapshot: bool = False
    clusters: list[str] = field(default_factory=list)
    connectors: list[Connector] = field(default_factory=list)
    gone: list[ConnectorName] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.snapshot or self.clusters or self.connectors or self.gone)

    def parts(self) -> Iterator[ConnectorChanges]:
        """As messages that a client takes; the last one has the revision."""
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
    """Numbers the changes of reported connectors. A change costs what changed, a question what is new to who asks."""

    def __init__(self) -> None:
        self._first = (1 << _PROCESSES | secrets.randbits(_PROCESSES)) << 32
        self._now = self._first + 1
        self._floor = self._now
        """Whoever knows less than this gets everything."""
        self._clusters: dict[str, _Cluster] = {}
        """The one that changed last is last."""

    @property
    def shown(self) -> set[str]:
        """The worker clusters whose connectors are shown."""
        return {name for name, cluster in self._clusters.items() if cluster.shown}

    def show(self, cluster: str, connectors: Mapping[str, Connector]) -> None:
        """A worker cluster is shown from now on, with these connectors by name."""
        self._now += 1
        found = {name: (self._now, connector) for name, connector in connectors.items()}
        self._touch(cluster, _Cluster(self._now, connectors=found))

    def hide(self, cluster: str) -> None:
        """A worker cluster is shown no longer."""
        if self._shown(cluster) is not None:
            self.end(cluster)

    def end(self, cluster: str) -> None:
        """The same of one that may not have been shown, and which watches know from its workers."""
        self._now += 1
        self._touch(cluster, _Cluster(self._now, shown=False))
        hidden = [name for name, one in self._clusters.items() if not one.shown]
        for name in hidden[: max(0, len(hidden) - MAX_GONE)]:
            self._floor = max(self._floor, self._clusters.pop(name).begun)

    def put(self, connector: Connector) -> None:
        """A connector is new, or has changed."""
        known = self._shown(connector.worker_cluster)
        if known is None or known.connectors.get(connector.name, (0, None))[1] == connector:
            return
        self._now += 1
        known.connectors.pop(connector.name, None)
        known.connectors[connector.name] = self._now, connector
        known.gone.pop(connector.name, None)
        self._touch(connector.worker_cluster, known)

    def drop(self, cluster: str, name: str) -> None:
        """A connector is gone."""
        known = self._shown(cluster)
        if known is None or known.connectors.pop(name, None) is None:
            return
        self._now += 1
        known.gone[name] = self._now
        if len(known.gone) > MAX_GONE:  # whoever does not know of the oldest gets all of the cluster
            known.begun = known.gone.pop(next(iter(known.gone)))
        self._touch(cluster, known)

    def become(self, cluster: str, connectors: Mapping[str, Connector]) -> None:
        """A worker cluster has these connectors now, by name."""
        known = self._shown(cluster)
        if known is None:
            return
        for name in known.connectors.keys() - connectors.keys():
            self.drop(cluster, name)
        for connector in connectors.values():
            self.put(connector)

    def after(self, revision: int, cluster: str = "", name: str = "") -> FeedChanges:
        """What is new to who knows all up to a revision: of a worker cluster, and of a name, where they are given."""
        news = FeedChanges(self._now, snapshot=not self._floor <= revision <= self._now)
        for one in reversed(self._clusters):
            known = self._clusters[one]
            if not news.snapshot and self._changed(known) <= revision:
                break
            if cluster in ("", one):
                _collect(news, one, known, revision, name)
        return news

    def _shown(self, cluster: str) -> _Cluster | None:
        known = self._clusters.get(cluster)
        return known if known is not None and known.shown else None

    def _touch(self, name: str, cluster: _Cluster) -> None:
        self._clusters.pop(name, None)
        self._clusters[name] = cluster

    @staticmethod
    def _changed(cluster: _Cluster) -> int:
        """With which change it has changed last."""
        newest = next(reversed(cluster.connectors.values()), (0, None))[0]
        return max(cluster.begun, newest, next(reversed(cluster.gone.values()), 0))


def _collect(news: FeedChanges, cluster: str, known: _Cluster, revision: int, name: str) -> None:
    whole = news.snapshot or known.begun > revision
    if whole and not news.snapshot:
        news.clusters.append(cluster)
    changed: Iterable[tuple[int, Connector]] = reversed(known.connectors.values())
    for number, connector in changed:
        if not whole and number <= revision:
            break
        if name in ("", connector.name):
            news.connectors.append(connector)
    if not whole:
        for gone, number in reversed(known.gone.items()):
            if number <= revision:
                break
            if name in ("", gone):
                news.gone.append(ConnectorName(worker_cluster=cluster, name=gone))
