"""The client's side of a watch: what it knows, and how it goes on after the server, or the way to it, has died."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from keelman.api.connect.v1.connector_pb2 import Connector, ConnectorChanges
from keelman.api.connect.v1.connector_service_pb2 import WatchConnectorsRequest
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.event.v1.event_pb2 import EVENT_TYPE_CREATED, EVENT_TYPE_DELETED, EVENT_TYPE_UPDATED, Event
from keelman.api.event.v1.watch_service_pb2 import WatchRequest, WatchResponse
from keelman.api.event.v1.watch_service_pb2_grpc import WatchServiceStub
from keelman.model.errors import Unavailable
from keelman.rpc.channels import Channel
from keelman.rpc.errors import translated_stream
from keelman.runtime.backoff import Backoff

Key: TypeAlias = tuple[str, str]
"""Noun and name."""
ConnectorKey: TypeAlias = tuple[str, str]
"""Worker cluster and name."""
Changed: TypeAlias = list[tuple[ConnectorKey, Connector | None]]
"""Connectors that are new or have changed; None for those that are gone."""


@dataclass(slots=True)
class Known:
    """The resources that a watch has shown so far. `revision` is where the next one goes on; 0 before the first whole
    snapshot."""

    revision: int = 0
    resources: dict[Key, Any] = field(default_factory=dict)
    _fresh: dict[Key, Event] | None = None

    def begin(self) -> int:
        """A new stream begins: the revision that it is to go on from. Half a snapshot is forgotten."""
        self._fresh = None
        return self.revision

    def fold(self, response: WatchResponse) -> list[Event]:
        """Takes an answer in; returns what it changes in what is known, once and in order.

        A snapshot that comes again, since what was missed is not kept any more, changes what differs: a resource that
        it does not have is DELETED.
        """
        events = [event for event in response.events if event.WhichOneof("resource")]  # others are of a later version
        if response.snapshot:
            self._fresh = {} if self._fresh is None else self._fresh
            self._fresh.update({key_of(event): event for event in events})
            return self._swap(response.revision) if response.snapshot_end else []
        news = [event for event in events if event.revision > self.revision]
        for event in news:
            if event.type == EVENT_TYPE_DELETED:
                self.resources.pop(key_of(event), None)
            else:
                self.resources[key_of(event)] = resource_of(event)
        self.revision = max(self.revision, response.revision)
        return news

    def _swap(self, revision: int) -> list[Event]:
        fresh, self._fresh = self._fresh or {}, None
        changed = []
        for key in sorted(self.resources.keys() - fresh.keys()):
            gone = Event(revision=revision, type=EVENT_TYPE_DELETED, name=key[1])
            getattr(gone, key[0]).CopyFrom(self.resources.pop(key))
            changed.append(gone)
        for key, event in fresh.items():
            if key not in self.resources or self.resources[key] != resource_of(event):
                event.type = EVENT_TYPE_UPDATED if key in self.resources else EVENT_TYPE_CREATED
                self.resources[key] = resource_of(event)
                changed.append(event)
        self.revision = revision
        return changed


def key_of(event: Event) -> Key:
    """Noun and name of the resource of an event."""
    return event.WhichOneof("resource") or "", event.name


def resource_of(event: Event) -> Any:
    """The resource that an event carries."""
    return getattr(event, event.WhichOneof("resource") or "node")


async def watch(
    link: Channel, nouns: Sequence[str], *, name: str = "", on_away: Callable[[Unavailable], None] = lambda _: None
) -> AsyncIterator[tuple[Known, list[Event]]]:
    """What changes of these nouns, first all there is, for ever: all that is known, and what the last answer changed.

    While nobody answers it tries again and calls `on_away` once; what changes meanwhile comes afterwards, nothing
    twice.
    Raises InvalidArgument for a noun that there is not.
    """
    known, stub = Known(), WatchServiceStub(link)

    def begin() -> Any:
        return stub.Watch(WatchRequest(nouns=nouns, name=name, from_revision=known.begin()))

    async with aclosing(_answers(begin, on_away)) as answers:
        async for answer in answers:
            changed = known.fold(answer)
            if changed or answer.snapshot_end:
                yield known, changed


async def _answers(begin: Callable[[], Any], on_away: Callable[[Unavailable], None]) -> AsyncGenerator[Any, None]:
    """Those of one stream after the other, for ever: each ends with its server, or the way to it."""
    backoff = Backoff(first=0.1, most=2.0)
    while True:
        call = begin()
        try:
            async for answer in translated_stream(call):
                backoff.reset()
                yield answer
        except Unavailable as error:
            if backoff.is_first:
                on_away(error)
        finally:
            call.cancel()
        await asyncio.sleep(backoff.next())


@dataclass(slots=True)
class KnownConnectors:
    """The connectors that a watch has shown so far. `revision` is where the next one goes on; 0 before all has come
    once."""

    revision: int = 0
    connectors: dict[ConnectorKey, Connector] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    """Why those of some worker clusters are not known, or only as they were."""
    _parts: list[ConnectorChanges] = field(default_factory=list)

    def begin(self) -> int:
        """A new stream begins: the revision that it is to go on from. Half a change is forgotten."""
        self._parts.clear()
        return self.revision

    def fold(self, changes: ConnectorChanges) -> Changed | None:
        """Takes a message in; returns what it and those before it change in what is known, None while there is more."""
        self._parts.append(changes)
        if changes.more:
            return None
        first, news = self._parts[0], dict[ConnectorKey, Connector | None]()
        begun = {cluster for part in self._parts for cluster in part.worker_clusters}
        for key in self.connectors:
            if first.snapshot or key[0] in begun:
                news[key] = None
        for part in self._parts:
            if part.HasField("unreachable"):
                self.unreachable = dict(part.unreachable.reasons)
            news.update({(one.worker_cluster, one.name): None for one in part.gone})
            news.update({(one.worker_cluster, one.name): one for one in part.connectors})
        self._parts.clear()
        self.revision = changes.revision or self.revision
        return [(key, one) for key, one in sorted(news.items()) if self._take(key, one)]

    def _take(self, key: ConnectorKey, connector: Connector | None) -> bool:
        """Whether this is new."""
        if self.connectors.get(key) == connector:
            return False
        if connector is None:
            del self.connectors[key]
        else:
            self.connectors[key] = connector
        return True


async def watch_connectors(
    link: Channel, *, worker_cluster: str = "", name: str = "", on_away: Callable[[Unavailable], None] = lambda _: None
) -> AsyncIterator[tuple[KnownConnectors, Changed]]:
    """What changes of connectors, of a worker cluster and a name where they are given; first all there are, for ever.

    While nobody answers it tries again and calls `on_away` once; what changes meanwhile comes afterwards, nothing
    twice.
    Raises NotFound for a worker cluster that there is not.
    """
    known, stub, is_first = KnownConnectors(), ConnectorServiceStub(link), True

    def begin() -> Any:
        return stub.WatchConnectors(
            WatchConnectorsRequest(worker_cluster=worker_cluster, name=name, from_revision=known.begin())
        )

    async with aclosing(_answers(begin, on_away)) as answers:
        async for answer in answers:
            changed = known.fold(answer.changes)
            if changed or (changed is not None and (is_first or answer.changes.HasField("unreachable"))):
                yield known, changed
                is_first = False
