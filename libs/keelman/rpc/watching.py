"""The client's side of a watch: the known resources, and how the watch continues after the server or the connection has
died."""

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
class KnownResources:
    """The resources that a watch has shown so far. `revision` is where the next stream continues; 0 before the first
    complete snapshot."""

    revision: int = 0
    resources: dict[Key, Any] = field(default_factory=dict)
    _fresh: dict[Key, Event] | None = None

    def begin(self) -> int:
        """Prepares a new stream. Returns the revision from which it continues. Drops an incomplete snapshot."""
        self._fresh = None
        return self.revision

    def fold(self, response: WatchResponse) -> list[Event]:
        """Applies an answer. Returns the events that change the known resources, once and in order.

        A snapshot that is sent again, because missed events are no longer kept, changes only the differences: a
        resource that is not in it is DELETED.
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
    """Returns noun and name of the resource of an event."""
    return event.WhichOneof("resource") or "", event.name


def resource_of(event: Event) -> Any:
    """Returns the resource that an event carries."""
    return getattr(event, event.WhichOneof("resource") or "node")


async def watch(
    link: Channel, nouns: Sequence[str], *, name: str = "", on_away: Callable[[Unavailable], None] = lambda _: None
) -> AsyncIterator[tuple[KnownResources, list[Event]]]:
    """Yields the changes of these nouns for ever, first all resources: everything known, and the changes of the last
    answer.

    While the server does not answer, it retries and calls `on_away` once; the changes of that time follow afterwards,
    none twice. Raises InvalidArgument for an unknown noun.
    """
    state, stub = KnownResources(), WatchServiceStub(link)

    def begin() -> Any:
        return stub.Watch(WatchRequest(nouns=nouns, name=name, from_revision=state.begin()))

    async with aclosing(_answers(begin, on_away)) as answers:
        async for answer in answers:
            changed = state.fold(answer)
            if changed or answer.snapshot_end:
                yield state, changed


async def _answers(begin: Callable[[], Any], on_away: Callable[[Unavailable], None]) -> AsyncGenerator[Any, None]:
    """Yields the answers of one stream after the other, for ever: a stream ends with its server or its connection."""
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
    """The connectors that a watch has shown so far. `revision` is where the next stream continues; 0 before everything
    has come once."""

    revision: int = 0
    connectors: dict[ConnectorKey, Connector] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)
    """The reasons why the connectors of some worker clusters are unknown or out of date."""
    _parts: list[ConnectorChanges] = field(default_factory=list)

    def begin(self) -> int:
        """Prepares a new stream. Returns the revision from which it continues. Drops an incomplete change."""
        self._parts.clear()
        return self.revision

    def fold(self, changes: ConnectorChanges) -> Changed | None:
        """Applies a message. Returns the changes that it and the parts before it make to the known connectors; None
        while parts are missing."""
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
            news.update({(gone.worker_cluster, gone.name): None for gone in part.gone})
            news.update({(connector.worker_cluster, connector.name): connector for connector in part.connectors})
        self._parts.clear()
        self.revision = changes.revision or self.revision
        return [(key, value) for key, value in sorted(news.items()) if self._take(key, value)]

    def _take(self, key: ConnectorKey, connector: Connector | None) -> bool:
        """Stores a connector, or removes it with None. Returns whether that changed anything."""
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
    """Yields the changes of connectors for ever, first all of them; only those of a worker cluster and a name, if
    given.

    While the server does not answer, it retries and calls `on_away` once; the changes of that time follow afterwards,
    none twice. Raises NotFound for an unknown worker cluster.
    """
    state, stub, is_first = KnownConnectors(), ConnectorServiceStub(link), True

    def begin() -> Any:
        return stub.WatchConnectors(
            WatchConnectorsRequest(worker_cluster=worker_cluster, name=name, from_revision=state.begin())
        )

    async with aclosing(_answers(begin, on_away)) as answers:
        async for answer in answers:
            changed = state.fold(answer.changes)
            if changed or (changed is not None and (is_first or answer.changes.HasField("unreachable"))):
                yield state, changed
                is_first = False
