"""A compacted topic kept as a table in memory: read from its beginning, and waited for by position. `TopicTables` has
it follow the topic."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from aiokafka.errors import KafkaError, for_code

from keelman.kafka.batches.record_batch import decode
from keelman.kafka.fetching.fetched import Fetched
from keelman.kafka.fetching.fetcher import BatchFetcher
from keelman.kafka.fetching.position import EARLIEST, LATEST, FetchPosition
from keelman.kafka.fetching.position_checks import READ_UNCOMMITTED, offsets_of
from keelman.kafka.leaders.client import LeaderClient
from keelman.kafka.leaders.metadata import Leader, Part
from keelman.model.errors import DeadlineExceeded, PermissionDenied, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger

log = get_logger()
ANSWER_SECONDS = 1.0  # the time to wait for a leader, at first, before other brokers must confirm that it still leads
QUIET_SECONDS = 10.0  # the interval at which it checks, while nothing comes, for a problem that prevents reading


@dataclass(frozen=True, slots=True)
class Row:
    """One record of the topic; a value of None is a tombstone."""

    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


class NewestRows:
    """Finds the newest row of a key that several partitions have: after a topic was given more partitions, producers
    write a key to another partition than before, and no compaction removes the former rows."""

    def __init__(self) -> None:
        self._last: dict[bytes, tuple[int, int]] = {}

    def takes(self, row: Row) -> bool:
        """Whether none of the earlier calls had a newer row of this key in another partition."""
        partition, time_ms = self._last.get(row.key, (row.partition, 0))
        if partition != row.partition and row.timestamp_ms < time_ms:
            return False
        self._last[row.key] = row.partition, row.timestamp_ms
        return True


class TopicTable:
    """Passes every record of one topic, in order by partition, to `apply`.

    `read_to_end()` is the strong read: everything written before the call is applied when it returns. The ends are read
    with ListOffsets READ_UNCOMMITTED even if records are read committed, since the end of a read_committed reader
    comes too early while a transaction is open; and a leader counts only if another broker confirms it.
    """

    def __init__(
        self, topic: str, partitions: int, apply: Callable[[Row], None], begin: Mapping[int, int] | None = None
    ) -> None:
        """`begin` are the first offsets for partitions that are not read from their beginning."""
        self.topic = topic
        self._parts: list[Part] = [(topic, number) for number in range(partitions)]
        self._newest: NewestRows | None = NewestRows()  # until all is read: later records are newer
        self._apply = apply
        self._client: LeaderClient | None = None
        self._reading: BatchFetcher | None = None
        self._heard_at = time.monotonic()
        self._positions = {**dict.fromkeys(range(partitions), EARLIEST), **(begin or {})}
        self._moved = asyncio.Event()
        self._seen = asyncio.Event()
        self._problem = self._logged = ""
        self._since = 0.0

    def opened(self, client: LeaderClient) -> None:
        """Requests end offsets from this client, until it is closed."""
        self._client = client

    def closed(self) -> None:
        """Forgets the client, which is closed."""
        self._client = None

    def read_by(self, fetcher: BatchFetcher | None) -> None:
        """Sets the fetcher that brings the records from now on, or None."""
        self._heard_at = self.heard_at
        self._reading = fetcher

    @property
    def positions(self) -> Mapping[int, int]:
        """The next offset of each partition; below 0 while it is unknown."""
        return dict(self._positions)

    @property
    def heard_at(self) -> float:
        """The time of the brokers' last answer to the topic's follower, by the monotonic clock.

        They answer at least every two seconds, also while nothing is written.
        """
        return self._heard_at if self._reading is None else max(self._heard_at, self._reading.heard_at(self.topic))

    def take_in(self, fetched: Fetched) -> None:
        """Applies fetched records of its topic. Has no await: a position that others see is an applied one."""
        at, number = fetched.position, fetched.partition
        for header, batch in fetched.batches:
            columns = decode(header, batch)
            for offset, key, value, time_ms in zip(
                columns.offsets, columns.keys, columns.values, columns.timestamps_ms, strict=True
            ):
                if key is not None and offset >= at:
                    row = Row(number, offset, key, value, time_ms)
                    if self._newest is None or self._newest.takes(row):
                        self._apply(row)
        self._positions[number] = fetched.next
        self._moved.set()
        self._moved = asyncio.Event()

    def see(self, problem: str, *, passes: bool = False) -> None:
        """Records the problem that prevents reading, empty for none. Logs only lasting problems: partitions of a topic
        that was just created have no leader for a moment."""
        now = time.monotonic()
        if not problem:
            self._logged = ""
        elif not self._problem:
            self._since = now
        if problem != self._logged and (not passes or now - self._since > QUIET_SECONDS):
            log.warning("topic_read_failed", topic=self.topic, error=problem)
            self._logged = problem
        self._problem = problem
        self._seen.set()
        self._seen = asyncio.Event()

    async def kept_out(self) -> None:
        """Raises PermissionDenied once the brokers' access rules deny reading; the follower itself keeps retrying."""
        while "AUTHORIZATION_FAILED" not in self._problem:
            await self._seen.wait()
        raise PermissionDenied(
            f"the brokers' access rules keep this worker out of topic {self.topic} (READ)", reason="KEPT_OUT"
        )

    async def read_to_end(self, *, seconds: float = 30.0) -> None:
        """Returns when everything written before the call is applied. Raises DeadlineExceeded, Unavailable."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                ends = await self.end_offsets()
        except TimeoutError:
            raise Unavailable(f"no broker reports the end of topic {self.topic} within {seconds} s") from None
        await self.read_to(ends, seconds=max(0.1, seconds - (time.monotonic() - begun)))
        self._newest = None

    def grow(self, partitions: int) -> bool:
        """Reads partitions that were added to the topic, which has `partitions` now; returns whether there were any."""
        new: list[Part] = [(self.topic, number) for number in range(len(self._parts), partitions)]
        if not new:
            return False
        log.warning("topic_has_more_partitions", topic=self.topic, before=len(self._parts), now=partitions)
        self._parts += new
        self._positions.update(dict.fromkeys((number for _, number in new), EARLIEST))
        if self._reading is not None:
            self._reading.add({part: FetchPosition(EARLIEST) for part in new})
        return True

    async def read_to(self, ends: Mapping[int, int], *, seconds: float = 30.0) -> None:
        """Returns when the applied position of each of these partitions has reached its end. Raises DeadlineExceeded.

        For the end offset of a write: that write and all earlier ones are applied then.
        """
        try:
            with contextlib.nullcontext() if self._reading is None else self._reading.pauses.hurried():
                async with asyncio.timeout(seconds):
                    while any(self._positions[partition] < end for partition, end in ends.items()):
                        await self._moved.wait()
        except TimeoutError:
            reason = f": {self._problem}" if self._problem else ""
            raise DeadlineExceeded(f"topic {self.topic} was not read to its end {dict(ends)} in time{reason}") from None

    async def end_offsets(self) -> dict[int, int]:
        """Returns the end offset of each partition, read_uncommitted."""
        assert self._client is not None
        backoff, patience = Backoff(first=0.05, most=1.0), ANSWER_SECONDS
        while True:
            try:
                async with asyncio.timeout(patience):
                    ends, _ = await asyncio.gather(self._ask_ends(self._client), self._client.learn({self.topic}))
                if not self.grow(len(self._client.cluster.partitions_for_topic(self.topic) or ())):
                    return ends
            except (KafkaError, OSError) as error:
                if isinstance(error, TimeoutError):  # another may lead: a leader whose host is gone never reports that
                    patience *= 2
                log.debug("list_offsets_failed", topic=self.topic, error=repr(error))
                await asyncio.sleep(backoff.next())
                await self._client.learn({self.topic})

    async def _ask_ends(self, client: LeaderClient) -> dict[int, int]:
        if client.cluster.partitions_for_topic(self.topic) is None:
            await client.learn({self.topic})
        led: dict[Part, Leader] = {}
        by_leader: dict[int, dict[Part, tuple[int, int]]] = {}
        for part in self._parts:
            leader = client.leader_of(part)
            if leader is None or leader.node < 0:
                raise KafkaError(f"partition {part[1]} of topic {part[0]} has no leader now")
            led[part] = leader
            by_leader.setdefault(leader.node, {})[part] = (LATEST, leader.epoch)
        ends: dict[int, int] = {}
        for node, parts_of_leader in by_leader.items():
            for part, offset in (await offsets_of(client, node, READ_UNCOMMITTED, parts_of_leader)).items():
                if offset.code:
                    raise for_code(offset.code)()
                ends[part[1]] = offset.offset
        if not await client.confirm(led):
            raise KafkaError(f"the leaders of topic {self.topic} have changed")
        return ends
