"""Reads a mirror task's partitions as columns, at the positions that its own offsets name; no group is involved."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position

from keelman.connect.plugin import Reader, TopicPlan, TopicWatch
from keelman.connect.records import Column, Offset, Partition, SourceBatch, TopicPartition
from keelman.connectors.mirror_syncs import OffsetSyncs
from keelman.engine.transactions import ClientLog
from keelman.runtime.logging import get_logger

# Few enough to stay in the processor's caches from the client to the client: 10,000 cost half as much again.
READ_RECORDS = 1_000
IDLE_SECONDS = 0.2
BUSY_SECONDS = 0.05
NEAR_SECONDS = 0.005
NEAR_RECORDS = 16
TROUBLE_LOG_SECONDS = 10.0

# Bounded so that a mirror stays small; a task's batch is at most what is queued here.
CONSUMER_DEFAULTS: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "fetch.queue.backoff.ms": 5,
    "queued.max.messages.kbytes": 16_384,
    "socket.nagle.disable": True,
}

_log = get_logger()


class MirrorReader(Reader):
    """Follows partitions of the source cluster."""

    lag_unit = "records"

    def __init__(
        self,
        settings: Mapping[str, Any],
        alias: str,
        rename: Callable[[str], str],
        starts: Mapping[TopicPartition, Offset | None],
        *,
        syncs: OffsetSyncs | None,
        plan: Callable[[str], TopicPlan | None],
        watch_properties: Mapping[str, str],
    ) -> None:
        """`starts` has each partition's committed offset, that of the last record copied. Raises KafkaException."""
        self._reset = str(settings.get("auto.offset.reset", "earliest"))
        self._names = {one: {"cluster": alias, "partition": one.partition, "topic": one.topic} for one in starts}
        self._topics = {topic: rename(topic) for topic in sorted({one.topic for one in starts})}
        self._syncs = syncs
        self._plan = plan
        self._watch_properties = watch_properties
        self._next: dict[TopicPartition, int] = {}
        self._at_end: set[TopicPartition] = set()
        self._ends_met: set[TopicPartition] = set()
        self._ready: deque[SourceBatch] = deque()
        self._wait = IDLE_SECONDS
        self._trouble = ""
        self._trouble_logged_at = float("-inf")
        # An unused group: the client wants a name for it. Where records were deleted before they were read the client
        # goes on as `auto.offset.reset` says, as MirrorMaker does, and says so in its log.
        own: dict[str, Any] = {
            "group.id": f"mirror-{alias}",
            "auto.offset.reset": "error" if self._reset == "none" else self._reset,
            "error_cb": self._client_error,
        }
        own["logger"] = ClientLog(lambda _facility, _text: None)
        self._consumer = Consumer({**CONSUMER_DEFAULTS, **settings, **own})
        self._consumer.assign([Position(*one, self._start(offset)) for one, offset in starts.items()])
        for one, offset in starts.items():
            if offset is not None:
                self._next[one] = offset["offset"] + 1

    def partitions(self) -> Sequence[Partition]:
        """Those of the task."""
        return tuple(self._names.values())

    def read(self) -> SourceBatch | None:
        """What the client holds, one batch a topic; waits a little when it holds nothing."""
        if self._ready:
            return self._ready.popleft()
        first = self._consumer.poll(self._wait)
        if first is None:
            self._wait = IDLE_SECONDS
            return None
        most = self.most_records or READ_RECORDS
        messages = [first, *self._consumer.consume(most - 1, 0)] if most > 1 else [first]
        ends: dict[TopicPartition, int] = {}
        if any(map(Message.error, messages)):
            messages = self._without_events(messages, ends)
        if not messages:
            self._reach(ends)
            return None
        self._trouble = ""
        if len(self._topics) == 1:
            self._ready.append(self._batch(next(iter(self._topics)), messages))
        else:
            topics: dict[str, list[Message]] = {}
            for topic, run in groupby(messages, Message.topic):
                topics.setdefault(topic, []).extend(run)
            self._ready.extend(self._batch(topic, some) for topic, some in topics.items())
        self._reach(ends)
        left = self._behind({TopicPartition(m.topic() or "", m.partition() or 0) for m in (messages[0], messages[-1])})
        if left <= NEAR_RECORDS:
            left = self._behind(self._next)
        # A commit marker behind the last record looks like a record that is still to come.
        self._ready[-1].short = left <= 1
        self._wait = IDLE_SECONDS if left <= 1 else NEAR_SECONDS if left <= NEAR_RECORDS else BUSY_SECONDS
        return self._ready.popleft()

    def _batch(self, topic: str, messages: list[Message]) -> SourceBatch:
        partitions = list(map(Message.partition, messages))
        headers = list(map(Message.headers, messages))
        keys = list(map(Message.key, messages))
        delivered: dict[int, Callable[[int, int], None]] = {}
        offsets: dict[TopicPartition, int] = {}
        end = 0
        for number, run in groupby(partitions):
            begin, end = end, end + sum(1 for _ in run)
            one = TopicPartition(topic, number)
            first, last = messages[begin].offset(), messages[end - 1].offset()
            if self._syncs is not None:
                skipped = last - first != end - 1 - begin or self._next.get(one, first) != first
                delivered[end - 1] = partial(self._delivered, one, last, skipped)
            offsets[one] = last
            self._next[one] = last + 1
            self._at_end.discard(one)
        return SourceBatch(
            topic=self._topics[topic],
            values=Column(list(map(Message.value, messages))),
            keys=Column(keys) if any(key is not None for key in keys) else None,
            partitions=partitions,
            timestamps_ms=[stamp for _, stamp in map(Message.timestamp, messages)],
            headers=headers if any(headers) else None,
            offsets=tuple((self._names[one], {"offset": last}) for one, last in offsets.items()),
            raw=True,
            delivered=delivered,
        )

    def _delivered(self, one: TopicPartition, upstream: int, skipped: bool, _partition: int, downstream: int) -> None:
        if self._syncs is not None:
            self._syncs.note(one, upstream, downstream, skipped=skipped)

    def committed(self) -> None:
        """Publishes the offset syncs that are due."""
        if self._syncs is not None:
            self._syncs.committed()

    def left(self) -> int | None:
        """Records behind the positions, by what the brokers last said; None before they said anything."""
        return self._behind(self._next) if self._next else None

    def _behind(self, partitions: Iterable[TopicPartition]) -> int:
        found = 0
        for one in partitions:
            high = self._consumer.get_watermark_offsets(Position(*one), cached=True)[1]
            found += max(0, high - self._next[one])
        return found

    def watch(self) -> TopicWatch | None:
        """The ends of all partitions, once they are reached."""
        if len(self._at_end) < len(self._names):
            return None
        return TopicWatch(dict(self._watch_properties), dict(self._next))

    def caught_up(self) -> bool:
        """Once each partition's end was met, whatever came behind it since."""
        return len(self._ends_met) == len(self._names)

    def topic_plan(self, topic: str) -> TopicPlan | None:
        """As the topic it is a copy of."""
        for source, remote in self._topics.items():
            if remote == topic:
                return self._plan(source)
        return None

    def waits_for(self) -> str:
        """The source cluster, while it has trouble."""
        return f"waits for the source cluster: {self._trouble}" if self._trouble else ""

    def close(self) -> None:
        """Closes the clients."""
        if self._syncs is not None:
            self._syncs.close()
        self._consumer.close()

    def _start(self, offset: Offset | None) -> int:
        if offset is not None:
            return int(offset["offset"]) + 1
        return int(OFFSET_END if self._reset in ("latest", "largest", "end") else OFFSET_BEGINNING)

    def _reach(self, ends: Mapping[TopicPartition, int]) -> None:
        """Notes the ends that were met, unless records came behind them. Beyond the last record of a partition there
        may be markers and what was aborted, all of it read."""
        for one, end in ends.items():
            if end >= self._next.get(one, 0):
                self._next[one] = end
                self._at_end.add(one)
                self._ends_met.add(one)

    def _without_events(self, messages: list[Message], ends: dict[TopicPartition, int]) -> list[Message]:
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
                continue
            one = TopicPartition(message.topic() or "", message.partition() or 0)
            if error.code() == KafkaError._PARTITION_EOF:
                ends[one] = message.offset() or 0
            elif error.fatal() or error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise KafkaException(error)
            else:
                self._client_error(error)
        return records

    def _client_error(self, error: KafkaError) -> None:
        self._trouble = error.str()
        if time.monotonic() - self._trouble_logged_at >= TROUBLE_LOG_SECONDS:
            self._trouble_logged_at = time.monotonic()
            _log.warning("mirror_source_trouble", error=error.str())
