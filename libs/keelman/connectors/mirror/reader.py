"""Reads a mirror task's partitions at the positions of its own offsets, as whole record batches, without a group."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connect.plugin import Reader
from keelman.connect.records import Column, Offset, Partition, SourceBatch, TopicPartition
from keelman.connect.topic_plan import TopicPlan
from keelman.connect.watches import TopicWatch
from keelman.connectors.mirror.backlog import Backlog, Portion
from keelman.connectors.mirror.offsets import position_behind, source_offset
from keelman.connectors.mirror.syncs import OffsetSyncs
from keelman.engine.topics_aside import TopicsAside
from keelman.kafka.batches.record_batch import BatchHeader, CorruptBatch, passable
from keelman.kafka.fetching.fetcher import BatchFetcher
from keelman.kafka.fetching.isolation import reads_committed
from keelman.kafka.fetching.position import EARLIEST, LATEST, FetchPosition
from keelman.kafka.fetching.position_checks import FetchFailure, Reset
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.leaders.client import LeaderClient
from keelman.kafka.leaders.metadata import Part
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.side_loop import KAFKA_LOOP

BUSY_SECONDS = 0.05
IDLE_SECONDS = 0.2
MAX_IDLE_SECONDS = 0.5
PROBLEM_LOG_SECONDS = 10.0
PASSING_SECONDS = 2.0
"""The time before a problem is logged: a moving leader is none."""
MAX_BATCH_BYTES = 1_048_588
"""The default of a topic's `max.message.bytes`. Larger batches are taken apart and packed again."""

# The values of MirrorMaker's consumer, and librdkafka's names for them.
_RESETS: dict[str, Reset] = {
    "earliest": "earliest",
    "smallest": "earliest",
    "beginning": "earliest",
    "latest": "latest",
    "largest": "latest",
    "end": "latest",
    "none": "none",
    "error": "none",
}

_log = get_logger()


class MirrorReader(Reader):
    """Follows partitions of the source cluster."""

    lag_unit = "records"
    limits_bytes = True

    def __init__(
        self,
        properties: Mapping[str, str],
        alias: str,
        rename: Callable[[str], str],
        starts: Mapping[TopicPartition, Offset | None],
        *,
        syncs: OffsetSyncs | None,
        plan: Callable[[str], TopicPlan | None],
    ) -> None:
        """`starts` has each partition's committed offset, the offset of the last copied record.

        `properties` are those of the source cluster's consumer, named as in Java. Batches of more than MAX_BATCH_BYTES
        are not passed on whole. Raises ConfigValueError, InvalidArgument.
        """
        self._properties = dict(properties)
        self._names = {
            partition: {"cluster": alias, "partition": partition.partition, "topic": partition.topic}
            for partition in starts
        }
        self._topics = {topic: rename(topic) for topic in sorted({partition.topic for partition in starts})}
        self._syncs = syncs
        self._plan = plan
        self._next = {
            partition: int(offset["offset"]) + 1 for partition, offset in starts.items() if offset is not None
        }
        self._given = dict(starts)
        self._before: dict[TopicPartition, Offset | None] = {}  # entries of `_given` that the last batch replaced
        self._last: tuple[str, dict[TopicPartition, int]] = "", {}  # the last batch's topic, and its first offsets
        self._aside = TopicsAside()  # topics whose target does not take them
        self._refused = TopicsAside()  # topics that may not be read
        self._refusals: deque[tuple[Part, FetchFailure]] = deque()
        self._left: dict[TopicPartition, FetchPosition] = {}
        self._written: set[TopicPartition] = set()
        self.sets_aside = len(self._topics) > 1
        self._at_end: set[TopicPartition] = set()
        self._ends_met: set[TopicPartition] = set()
        self._backlog = Backlog(self._whole, self._reached)
        self._wait = IDLE_SECONDS
        self._news = KAFKA_LOOP.signal()
        self._problem_logged_at = time.monotonic() - PROBLEM_LOG_SECONDS + PASSING_SECONDS
        reset = starts_at(properties)
        # Checksums are verified where batches are taken apart or left out; a batch that is passed on whole keeps its
        # checksum, and the target's brokers refuse a wrong one. The run after such a refusal verifies all batches until
        # its first commit, and so finds the refused batch and reports where it is.
        self._check_crcs = FetchSettings.of({"check.crcs": "false", **properties}).check_crcs
        self._settings = replace(FetchSettings.of({**properties, "check.crcs": "true"}), makes_way=True)
        first = LATEST if reset == "latest" else EARLIEST
        positions: dict[Part, FetchPosition] = {
            (*partition,): FetchPosition(first) if offset is None else position_behind(offset)
            for partition, offset in starts.items()
        }
        self._fetcher = KAFKA_LOOP.call(self._open(f"mirror-{alias}", positions, reset))

    async def _open(self, client_id: str, positions: Mapping[Part, FetchPosition], reset: Reset) -> BatchFetcher:
        client = LeaderClient(self._properties, client_id=self._properties.get("client.id", client_id))
        return BatchFetcher(
            client,
            positions,
            read_committed=reads_committed(self._properties),
            reset=reset,
            settings=self._settings,
            arrived=self._news.set,
            refused=self._note_refusal,
        )

    def _note_refusal(self, part: Part, failure: FetchFailure) -> None:
        """Queues a refusal; called in the fetcher's loop."""
        self._refusals.append((part, failure))
        self._news.set()

    def partitions(self) -> Sequence[Partition]:
        """Returns the task's partitions."""
        return tuple(self._names.values())

    def read(self) -> SourceBatch | None:
        """Returns fetched records of one topic; waits briefly when there are none.

        Raises KafkaException, and ConnectError for a batch that is damaged where it is read.
        """
        try:
            for aside in (self._aside, self._refused):
                if aside:
                    self._return_to(aside.due())
            if not self._backlog:
                self._receive()
            portion = self._backlog.take(self.most_records, self.most_bytes)
        except CorruptBatch as error:
            raise ConnectError(error.message) from error
        if portion is None:
            return None
        short = not self._backlog and not self._fetcher.waiting and not self.left()
        self._wait = IDLE_SECONDS if short else BUSY_SECONDS
        return self._batch(portion, short=short)

    def _receive(self) -> None:
        if not self._news.wait(self._wait):
            self._wait = min(MAX_IDLE_SECONDS, max(IDLE_SECONDS, 1.5 * self._wait))
            self._log_problem()
        self._news.clear()
        self._take_in()

    def _take_in(self) -> None:
        try:
            for fetched in self._fetcher.take():
                self._backlog.add(fetched)
                if self._refused:
                    self._refused.taken([TopicPartition(fetched.topic, fetched.partition)])
            while self._refusals:
                self._leave_refused(*self._refusals.popleft())
        except FetchFailure as error:
            raise KafkaException(KafkaError(error.code, str(error))) from error

    def _whole(self, header: BatchHeader) -> bool:
        return self.packs and header.size <= MAX_BATCH_BYTES and passable(header, codec=self.codec)

    def _reached(self, partition: TopicPartition, position: int, end: int) -> None:
        """Notes a partition's position behind markers and aborted records, which may follow its last record."""
        self._next[partition] = position
        if position >= end:
            self._at_end.add(partition)
            self._ends_met.add(partition)
        else:
            self._at_end.discard(partition)

    def _leave_refused(self, part: Part, failure: FetchFailure) -> None:
        """Sets aside all of a topic that may not be read. Raises the failure if the task copies no other topic."""
        topic = part[0]
        if part in self._left:
            return  # set aside with another partition of its topic
        if not self._others(topic):
            raise failure
        theirs = self._parts_of(topic)
        self._left |= self._leave(theirs)
        self._wait_in(self._refused, theirs, str(failure))

    def set_aside(self, why: str) -> bool:
        """Sets aside the last batch's topic. Returns False if the task copies no other topic."""
        topic, begins = self._last
        if not self._others(topic):
            return False
        self._given |= self._before
        theirs = self._parts_of(topic)
        positions = self._leave(theirs)
        self._take_in()
        begins = self._backlog.drop(topic) | begins
        for partition in theirs:
            last = self._given[partition]
            if partition not in begins:
                self._left[partition] = positions[partition]
            else:
                self._left[partition] = FetchPosition(begins[partition]) if last is None else position_behind(last)
                self._next[partition] = self._left[partition].offset
        self._written -= theirs
        self._wait_in(self._aside, theirs, why)
        return True

    def _wait_in(self, aside: TopicsAside, theirs: set[TopicPartition], reason: str) -> None:
        self._at_end -= theirs
        self._ends_met -= theirs
        aside.put(theirs, reason)

    def _parts_of(self, topic: str) -> set[TopicPartition]:
        return {partition for partition in self._names if partition.topic == topic}

    def _others(self, topic: str) -> bool:
        """Returns whether the task copies another topic now."""
        return bool(self._names.keys() - self._parts_of(topic) - self._aside.partitions - self._refused.partitions)

    def _leave(self, parts: set[TopicPartition]) -> dict[TopicPartition, FetchPosition]:
        """Stops fetching these partitions. Returns their positions."""
        positions = KAFKA_LOOP.call(self._fetcher.leave([(*part,) for part in parts]))
        return {TopicPartition(*partition): at for partition, at in positions.items()}

    def aside(self) -> Mapping[str, int]:
        """Returns the counts of partitions set aside by topic, for either reason."""
        return {**self._aside.counts(), **self._refused.counts()}

    def _return_to(self, partitions: Collection[TopicPartition]) -> None:
        """Fetches these partitions again."""
        positions = {(*partition,): self._left.pop(partition) for partition in partitions if partition in self._left}
        if positions:
            KAFKA_LOOP.call(self._fetch_again(positions))

    async def _fetch_again(self, positions: Mapping[Part, FetchPosition]) -> None:
        self._fetcher.add(positions)

    def _batch(self, portion: Portion, *, short: bool) -> SourceBatch:
        delivered: dict[int, Callable[[int, int], None]] = {}
        offsets = {
            partition: source_offset(run.last, run.epoch, run.topic_id) for partition, run in portion.runs.items()
        }
        self._last = portion.topic, {partition: run.first for partition, run in portion.runs.items()}
        self._before = {partition: self._given[partition] for partition in offsets}
        self._given |= offsets
        self._written |= offsets.keys()
        for partition, run in portion.runs.items():
            if self._syncs is not None:
                delivered[run.index] = partial(self._delivered, partition, run.last, run.skipped)
            self._next[partition] = max(self._next.get(partition, 0), run.last + 1)
        return SourceBatch(
            topic=self._topics[portion.topic],
            values=Column(portion.values),
            keys=Column(portion.keys) if portion.keys.count(None) < len(portion.keys) else None,
            partitions=portion.partitions,
            timestamps_ms=portion.timestamps_ms,
            headers=portion.headers if any(portion.headers) else None,
            offsets=tuple((self._names[partition], offset) for partition, offset in offsets.items()),
            short=short,
            raw=True,
            packed=portion.packed,
            delivered=delivered,
            position=None if portion.packed else partial(self._position, portion),
        )

    def _position(self, portion: Portion, index: int) -> tuple[Partition, Offset]:
        partition = TopicPartition(portion.topic, portion.partitions[index])
        return self._names[partition], {"offset": portion.offsets[index]}

    def _delivered(
        self, partition: TopicPartition, upstream: int, skipped: bool, _partition: int, downstream: int
    ) -> None:
        if self._syncs is not None:
            self._syncs.note(partition, upstream, downstream, skipped=skipped)

    def committed(self) -> None:
        """Publishes the offset syncs that are due."""
        self._fetcher.check_crcs = self._check_crcs
        if self._aside:
            self._aside.taken(self._written)
        self._written.clear()
        if self._syncs is not None:
            self._syncs.committed()

    def left(self) -> int | None:
        """Returns the number of offsets behind the positions, by the brokers' last answers; None before the first."""
        ends = self._fetcher.ends
        return sum(max(0, ends.get(partition, 0) - at) for partition, at in self._next.items()) if self._next else None

    def watch(self) -> TopicWatch | None:
        """Returns a watch on the ends of all partitions, once reached, if another broker confirms their leaders."""
        if len(self._at_end) < len(self._names) or not self._fetcher.confirmed():
            return None
        return TopicWatch(self._properties, dict(self._next))

    def caught_up(self) -> bool:
        """Returns whether each partition's end was reached once, regardless of later records."""
        return len(self._ends_met) == len(self._names)

    def topic_plan(self, topic: str) -> TopicPlan | None:
        """Returns the plan for a copy, by its source topic."""
        for source, remote in self._topics.items():
            if remote == topic:
                return self._plan(source)
        return None

    def waits_for(self) -> str:
        """Returns a text about the source cluster while it has a problem, and about topics set aside."""
        problem = self._fetcher.problem
        waits = (problem and f"waits for the source cluster: {problem}", self._aside.text(), self._refused.text())
        return "; ".join(filter(None, waits))

    def close(self) -> None:
        """Closes the clients."""
        try:
            if self._syncs is not None:
                self._syncs.close()
        finally:
            KAFKA_LOOP.call(self._fetcher.close())

    def _log_problem(self) -> None:
        problem, now = self._fetcher.problem, time.monotonic()
        if not problem:
            self._problem_logged_at = now - PROBLEM_LOG_SECONDS + PASSING_SECONDS
        elif now - self._problem_logged_at >= PROBLEM_LOG_SECONDS:
            self._problem_logged_at = now
            _log.warning("mirror_source_trouble", error=problem)


def starts_at(properties: Mapping[str, str]) -> Reset:
    """Returns the start of a partition without an offset. Raises ConfigValueError."""
    text = properties.get("auto.offset.reset", "earliest").strip().lower()
    if text not in _RESETS:
        raise ConfigValueError("auto.offset.reset", text, "String must be one of: earliest, latest, none")
    return _RESETS[text]
