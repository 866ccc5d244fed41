"""Reads a task's vbuckets and makes records of their changes; no group is involved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.plugin import Reader
from keelman.connect.records import Column, Headers, Offset, Partition, SourceBatch
from keelman.connect.schema import STRING, Schema
from keelman.connect.watches import VbucketPosition, VbucketWatch
from keelman.connectors.couchbase.partitions import offset
from keelman.couchbase.changes import StreamOptions, VbucketChanges
from keelman.couchbase.cluster import BucketCluster
from keelman.couchbase.errors import AwayError, CouchbaseError
from keelman.couchbase.seeds import BucketAccess
from keelman.couchbase.vbucket import VBUCKET_OF, Event, HistoryPlace, Position
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

BUSY_SECONDS = 0.05
IDLE_SECONDS = 0.3
MAX_EVENTS = 2000
PROBLEM_LOG_SECONDS = 10.0

_log = get_logger()


@dataclass(slots=True)
class TopicRows:
    """Records for one topic, in their order. Keys are texts as UTF-8; `schema` is that of all values, None for none.
    `headers` is empty, or has those of each."""

    topic: str
    schema: Schema | None = None
    keys: list[bytes] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def add(self, event: Event, key: bytes, value: Any) -> None:
        """One more."""
        self.keys.append(key)
        self.values.append(value)
        self.events.append(event)


class RecordMaker(Protocol):
    """Makes a connector's records of changes."""

    def rows(self, events: Sequence[Event]) -> Sequence[TopicRows]:
        """The records of some changes, none empty. Raises ConnectError."""

    def first(self, begins: Mapping[int, Position], fresh: Sequence[int]) -> Sequence[TopicRows]:
        """Records to begin with; `fresh` are vbuckets that had no offset."""


@contextmanager
def connect_errors() -> Iterator[None]:
    """Gives errors of Couchbase's client the names by which the engine knows what may help."""
    try:
        yield
    except AwayError as error:
        raise RetriableConnectError(str(error)) from error
    except CouchbaseError as error:
        raise ConnectError(str(error)) from error


class ChangePace:
    """At most so many changes in a second; the count begins at 0 with each."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._second, self._left = -1, 0

    def left(self, now: float) -> int | None:
        """How many may be taken now; None for any."""
        if self._most is None:
            return None
        if int(now) != self._second:
            self._second, self._left = int(now), self._most
        return self._left

    def taken(self, count: int) -> None:
        """So many were."""
        self._left -= count


class CouchbaseReader(Reader):
    """One task's vbuckets. `starts` has the position of each, None for behind its last change."""

    lag_unit = "records"

    def __init__(
        self,
        access: BucketAccess,
        options: StreamOptions,
        starts: Mapping[int, Position | None],
        partition: Callable[[int], Partition],
        maker: RecordMaker,
        *,
        properties: Mapping[str, str],
        resumes: bool = True,
        most: int = MAX_EVENTS,
        rate: int | None = None,
        beat: Callable[[], None],
    ) -> None:
        """`properties` are how the cluster is reached, for who watches it while nothing changes. `resumes`: whether the
        next reader begins at the offsets of this one; where not, the task stays in its slot.

        Raises ConnectError, RetriableConnectError."""
        self._properties, self._resumes = properties, resumes
        self._maker, self._most = maker, most
        self._names = {vbucket: partition(vbucket) for vbucket in starts}
        self._pace = ChangePace(rate)
        self._ready: list[SourceBatch] = []
        self._behind = 0
        self._logged_at = float("-inf")
        self._news = KAFKA_LOOP.signal()
        self._changes: VbucketChanges | None = None
        try:
            with connect_errors():
                begins = KAFKA_LOOP.call(self._open(access, options, starts), beat)
        except BaseException:
            self.close()
            raise
        fresh = [vbucket for vbucket, position in starts.items() if position is None]
        self._ready = self._first(maker, begins, fresh)

    async def _open(
        self, access: BucketAccess, options: StreamOptions, starts: Mapping[int, Position | None]
    ) -> dict[int, Position]:
        cluster = BucketCluster(access)
        await cluster.bootstrap()
        self._changes = VbucketChanges(cluster, options, self._news.set)
        return await self._changes.start(starts)

    def _first(self, maker: RecordMaker, begins: Mapping[int, Position], fresh: Sequence[int]) -> list[SourceBatch]:
        """What to begin with. Where a vbucket begins that had no offset is committed at once: what changes behind it is
        the next reader's to copy, also where this one meets no change at all."""
        offsets = {}
        if self._resumes:
            offsets = {
                vbucket: offset(begins[vbucket].seqno, begins[vbucket].place or HistoryPlace()) for vbucket in fresh
            }
        return self._batches(maker.first(begins, fresh), offsets)

    def partitions(self) -> Sequence[Partition]:
        """The task's vbuckets."""
        return tuple(self._names.values())

    def read(self) -> SourceBatch | None:
        """Returns records of received changes, topic by topic; waits briefly if there are none. Raises ConnectError."""
        if self._ready:
            return self._ready.pop(0)
        changes = self._opened()
        most = self._most if self.most_records is None else max(1, min(self._most, self.most_records))
        paced = self._pace.left(time.monotonic())
        if paced is not None and paced <= 0:
            now = time.monotonic()
            self._news.clear()
            self._news.wait(max(0.001, int(now) + 1 - now))
            return None
        if not changes.waiting:
            self._news.wait(BUSY_SECONDS if self._behind else IDLE_SECONDS)
        self._news.clear()
        with connect_errors():
            events = changes.take(most if paced is None else min(most, paced))
        self.rollbacks, self.taken_back = changes.rollbacks, changes.taken_back
        self._behind = len(events)
        if not events:
            self._log_problem(changes)
            return None
        self._pace.taken(len(events))
        with connect_errors():
            rows = self._maker.rows(events)
        last = dict(zip(map(VBUCKET_OF, events), events, strict=True))
        offsets = {vbucket: offset(event.seqno, event.place) for vbucket, event in last.items()}
        self._ready = self._batches(rows, offsets, short=not changes.waiting)
        return self._ready.pop(0)

    def left(self) -> int | None:
        """Changes that the servers have announced and that were not read."""
        return self._opened().left()

    def watch(self) -> VbucketWatch | None:
        """Returns a watch on the last changes of all vbuckets, once read; None if the next reader would not begin
        there."""
        places = None if self._ready or not self._resumes else self._opened().resting()
        if places is None:
            return None
        return VbucketWatch(self._properties, {n: VbucketPosition(*at) for n, at in places.items()})

    def waits_for(self) -> str:
        """The cluster, while some vbucket cannot be read."""
        problem = self._opened().problem
        return f"waits for Couchbase: {problem}" if problem else ""

    def close(self) -> None:
        """Closes the connections."""
        changes, self._changes = self._changes, None
        if changes is not None:
            KAFKA_LOOP.call(changes.close())

    def _opened(self) -> VbucketChanges:
        assert self._changes is not None
        return self._changes

    def _batches(
        self, rows: Sequence[TopicRows], offsets: Mapping[int, Offset], *, short: bool = True
    ) -> list[SourceBatch]:
        """A batch a topic, to be committed together; the last one has the offsets."""
        batches = [self._batch(rows) for rows in rows]
        if not batches and offsets:
            batches = [SourceBatch("", Column([]))]
        for batch in batches[:-1]:
            batch.more = True
        if batches:
            batches[-1].offsets = tuple((self._names[vbucket], at) for vbucket, at in offsets.items())
            batches[-1].short = short
        return batches

    def _batch(self, rows: TopicRows) -> SourceBatch:
        def position(index: int) -> tuple[Partition, Offset]:
            event = rows.events[index]
            return self._names[event.vbucket], offset(event.seqno, event.place)

        return SourceBatch(
            rows.topic,
            Column(rows.values, rows.schema),
            Column(rows.keys, STRING, utf8=True),
            headers=rows.headers or None,
            position=position,
        )

    def _log_problem(self, changes: VbucketChanges) -> None:
        now = time.monotonic()
        if changes.problem and now - self._logged_at >= PROBLEM_LOG_SECONDS:
            self._logged_at = now
            _log.warning("couchbase_source_trouble", error=changes.problem)
