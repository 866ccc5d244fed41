"""Serves watches: the resources at one revision, then each change of the outbox in the order of revisions.

Changes are kept for a while, for all watches of this process and for the relay; a slower watch reads the outbox itself,
in batches, and begins again with a snapshot if the outbox has been trimmed meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.api.event.v1 import watch_service_pb2 as pb
from keelman.api.event.v1 import watch_service_pb2_grpc
from keelman.model.errors import InvalidArgument, Unavailable
from keelman.rpc.server import Context
from keelman.runtime.supervise import first_of
from keelman.state.database.tables import OutboxRow
from keelman.state.nouns.registry import NOUNS
from keelman.state.resources.hub import Hub
from keelman.state.resources.noun import CREATED
from keelman.state.resources.snapshot import Snapshot
from keelman.state.resources.store import ResourceStore

PART = 1000
PART_BYTES = 1 << 20  # a client with default settings accepts messages of up to 4 MiB
KEPT, KEPT_BYTES = 2000, 16 << 20
BATCH = 200  # of a slower watch
SLICE = 50  # the number encoded before others have a turn
QUIET = 500  # after this number of revisions without a match a watch gets the present revision
QUIET_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class WatchedChange:
    """One row of the outbox."""

    revision: int
    noun: str
    name: str
    event: bytes


async def changes_between(session: AsyncSession, after: int, newest: int, most: int) -> list[WatchedChange]:
    """Returns the next changes in their order, up to the newest, at most `most`; trimmed ones are missing."""
    statement = select(OutboxRow).where(col(OutboxRow.revision) > after, col(OutboxRow.revision) <= newest)
    rows = (await session.exec(statement.order_by(col(OutboxRow.revision)).limit(most))).all()
    return [WatchedChange(row.revision, row.noun, row.name, row.payload) for row in rows]


@dataclass(slots=True)
class Tail:
    """The newest changes, for all readers: this process's own commits as they are, others' read once."""

    store: ResourceStore
    _kept: deque[WatchedChange] = field(default_factory=deque)
    _size: int = 0  # of the kept ones, in bytes
    _newest: int = -1
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def add(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Adds the rows of the outbox that a commit of this process wrote, if they are the next ones."""
        if events and events[0]["revision"] == self._newest + 1:
            self._keep([WatchedChange(e["revision"], e["noun"], e["name"], e["payload"]) for e in events])
            self._newest = events[-1]["revision"]

    async def after(self, revision: int) -> tuple[Sequence[WatchedChange], bool]:
        """Returns the next changes after a revision, not all of them if they are many; and whether none before them is
        lost.

        Changes are lost if the outbox was trimmed, or if the revision is in the future.
        """
        async with self._turn:
            if self._newest < self.store.revision:
                await self._read()
        newest = self._newest
        if revision >= newest:
            return (), revision == newest
        if self._kept and self._kept[0].revision <= revision + 1:
            skipped = revision + 1 - self._kept[0].revision
            return list(islice(self._kept, skipped, skipped + PART)), True
        async with self.store.database.read() as session:
            changes = await changes_between(session, revision, newest, BATCH)
        return changes, bool(changes) and changes[0].revision == revision + 1

    async def _read(self) -> None:
        newest, changes = self.store.revision, []
        if self._newest >= 0 and newest - self._newest <= PART:
            async with self.store.database.read() as session:
                changes = await changes_between(session, self._newest, newest, PART)
        if len(changes) == newest - self._newest:
            self._keep(changes)
        else:
            self._kept.clear()  # a reader that far behind reads the outbox
            self._size = 0
        self._newest = newest

    def _keep(self, changes: Sequence[WatchedChange]) -> None:
        self._kept.extend(changes)
        self._size += sum(len(change.event) for change in changes)
        while len(self._kept) > KEPT or self._size > KEPT_BYTES:
            self._size -= len(self._kept.popleft().event)


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """The resources of a watch; no name means all."""

    nouns: Sequence[str]
    name: str

    def matches(self, noun: str, name: str) -> bool:
        """Returns whether a resource is watched."""
        return noun in self.nouns and self.name in ("", name)

    @property
    def subjects(self) -> list[Hashable]:
        """The subjects that wake the watch."""
        return [(noun, self.name) if self.name else noun for noun in self.nouns]


@dataclass(frozen=True, slots=True)
class WatchApi(watch_service_pb2_grpc.WatchServiceServicer):
    """Watches of every noun."""

    store: ResourceStore
    commits: Hub
    tail: Tail
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def Watch(self, request: pb.WatchRequest, context: Context) -> AsyncIterator[pb.WatchResponse]:
        """Sends a snapshot if one is due, then changes, until the client leaves or this service stops."""
        watch_filter, revision = checked(request), request.from_revision
        due, sent = revision == 0, -1
        if revision > self.store.revision:
            await self.store.catch_up()  # another process may have given this revision
        with self.commits.subscribe(*watch_filter.subjects) as changed:
            while not self.stopping.is_set():
                if due:
                    revision, resources = self.store.revision, everything(self.store.snapshot, watch_filter)
                    async for part in snapshot_parts(resources, revision, self.store.database.clock()):
                        yield part
                    due, sent = False, revision
                changed.clear()
                changes, whole = await self.tail.after(revision)
                if not whole:
                    due = True
                    continue
                if changes:
                    revision = changes[-1].revision
                    for part in parts_of(changes, watch_filter):
                        yield part
                        sent = part.revision
                if sent < 0 or revision - sent >= QUIET:
                    yield pb.WatchResponse(revision=revision)
                    sent = revision
                if not changes:
                    await first_of(changed.wait(), self.stopping.wait(), asyncio.sleep(QUIET_SECONDS))
        raise Unavailable("the state service is stopping: watch again", reason="STOPPING")


def checked(request: pb.WatchRequest) -> WatchFilter:
    """Returns the filter of a request; raises InvalidArgument for an unknown noun, and for a revision below 0."""
    for number, noun in enumerate(request.nouns):
        if noun not in NOUNS:
            raise InvalidArgument.of(f"nouns[{number}]", noun, f"one of {', '.join(NOUNS)}")
    if request.from_revision < 0:
        raise InvalidArgument.of("from_revision", request.from_revision, "0, or the revision of an answer")
    return WatchFilter([n for n in NOUNS if n in request.nouns or not request.nouns], request.name)


def parts_of(changes: Iterable[WatchedChange], watch_filter: WatchFilter) -> Iterator[pb.WatchResponse]:
    """Yields the wanted changes, in parts that fit into a message each."""
    part, size = pb.WatchResponse(), 0
    for change in changes:
        if not watch_filter.matches(change.noun, change.name):
            continue
        if part.events and size + len(change.event) > PART_BYTES:
            yield part
            part, size = pb.WatchResponse(), 0
        part.events.add().MergeFromString(change.event)
        part.revision = change.revision
        size += len(change.event)
    if part.events:
        yield part


def everything(snapshot: Snapshot, watch_filter: WatchFilter) -> list[Any]:
    """Returns the wanted resources, by noun and name: a copy that stays as it is while it is sent."""
    messages = []
    for noun in watch_filter.nouns:
        resources = snapshot.resources(noun)
        names = snapshot.names(noun) if not watch_filter.name else {watch_filter.name} & resources.keys()
        messages += [resources[name] for name in names]
    return messages


async def snapshot_parts(resources: Sequence[Any], revision: int, now: datetime) -> AsyncIterator[pb.WatchResponse]:
    """Yields the parts of a snapshot that fit into a message each; the last one has the revision."""
    part, size = pb.WatchResponse(snapshot=True), 0
    for number, resource in enumerate(resources):
        if number % SLICE == SLICE - 1:
            await asyncio.sleep(0)
        event = NOUNS[resource.NOUN].event_bytes(CREATED, resource, revision, now)
        if len(part.events) == PART or (part.events and size + len(event) > PART_BYTES):
            yield part
            part, size = pb.WatchResponse(snapshot=True), 0
        part.events.add().MergeFromString(event)
        size += len(event)
    part.snapshot_end, part.revision = True, revision
    yield part
