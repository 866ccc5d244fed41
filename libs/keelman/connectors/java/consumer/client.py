"""Kafka's Java consumer behind the client library's methods that the engine calls, so that it steers both alike.

Its records stay in Java. It is for one thread, the copy run's; its callbacks are called within its methods, as with the
client library. A callback's error is raised by the method, and does not pass through Java.
Source: `KafkaConsumer`, `ConsumerCoordinator` and `SubscriptionState` of Kafka's clients 4.3, classic groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.records import TopicPartition
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.consumer.errors import CONSUMER, kafka_error, kafka_exception, refuses
from keelman.connectors.java.consumer.records import JavaRecords, PartitionRecords
from keelman.connectors.java.jvm import java_class, jpype
from keelman.engine.clients import partition_of
from keelman.engine.sink.consumer.own_consumer import ConsumerOrder

DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
COMMIT_SECONDS = 30.0
ENDS_SECONDS = 1.0
"""The longest time between two checks for partitions that have been read to their ends."""
NO_EPOCH = -1
Events = list[tuple[Message, KafkaError]]


@dataclass(slots=True)
class TopicMetadata:
    """The metadata of one topic: its partitions, by number."""

    java: Any

    @property
    def partitions(self) -> Mapping[int, Any]:
        """Computed at each access: there may be many topics."""
        return {int(info.partition()): info for info in self.java}


@dataclass(slots=True)
class TopicsMetadata:
    """All topics, by name."""

    topics: Mapping[str, TopicMetadata] = field(default_factory=dict)


class JavaConsumer:
    """The consumer of one copy run."""

    def __init__(self, order: ConsumerOrder, sizes: Callable[[Any], int]) -> None:
        """`sizes` returns the bytes of all keys and values in a Java list of records. Raises KafkaException."""
        self._order, self._sizes = order, sizes
        self._map, self._set = java_class("java.util.HashMap"), java_class("java.util.HashSet")
        self._kept_offset = java_class(f"{CONSUMER}.OffsetAndMetadata")
        self._place = java_class("org.apache.kafka.common.TopicPartition")
        self._optional = java_class("java.util.Optional")
        self._durations: dict[float, Any] = {}
        self._places: dict[TopicPartition, Any] = {}
        self._callbacks: dict[str, Callable[..., Any]] = {}
        self._raised: BaseException | None = None
        self._ahead: list[PartitionRecords] = []
        self._events: Events = []
        self._ends: dict[TopicPartition, int] = {}
        self._ends_at = 0.0
        self._answers = jpype().JProxy(f"{CONSUMER}.OffsetCommitCallback", dict={"onComplete": self._committed})
        self.java = self._opened()
        self.group_metadata = self.java.groupMetadata()
        """Its membership as of the last rebalance, for commits made with it elsewhere; from any thread."""

    def _opened(self) -> Any:
        kind, bytes_only = java_class(f"{CONSUMER}.KafkaConsumer"), java_class(DESERIALIZER)
        thread = java_class("java.lang.Thread").currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(kind.class_.getClassLoader())
        try:
            return kind(string_map(self._order.properties), bytes_only(), bytes_only())
        except jpype().JException as error:
            raise kafka_exception(error) from None
        finally:
            thread.setContextClassLoader(before)

    # Reading.

    def read(self, most: int, seconds: float) -> JavaRecords:
        """Returns at most `most` records; waits up to `seconds` for the first."""
        if not self._ahead:
            self._poll(seconds)
        parts: list[PartitionRecords] = []
        while most > 0 and self._ahead:
            part = self._ahead.pop(0)
            if part.count > most:
                part, rest = part.split(most)
                self._ahead.insert(0, rest)
            parts.append(part)
            most -= part.count
        events, self._events = self._events, []
        if not parts or time.monotonic() - self._ends_at > ENDS_SECONDS:
            events += self._reached(parts)
        return JavaRecords(parts, sum(self._sizes(part.records) for part in parts), events)

    def poll(self, seconds: float = 0.0) -> None:
        """Polls for callbacks, and keeps records for the next `read`. Raises what a callback raises."""
        self._poll(seconds)

    def _poll(self, seconds: float) -> None:
        polled = None
        try:
            polled = self.java.poll(self._duration(seconds))
        except jpype().JException as error:
            if self._raised is None:
                self._take_error(error)
        self._raise()
        if polled is not None and not polled.isEmpty():
            for place in polled.partitions():
                records = polled.records(place)
                self._ahead.append(PartitionRecords(_where(place), records, len(records)))

    def _raise(self) -> None:
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _take_error(self, error: Any) -> None:
        """Turns a poll's error into events. Raises what `on_error` raises."""
        failure = kafka_error(error)
        if refuses(error):
            self._order.on_error(failure)
            return
        lost: Iterable[Any] = ()
        if isinstance(error, java_class(f"{CONSUMER}.OffsetOutOfRangeException")):  # a truncated log's among them
            lost, failure = error.partitions(), KafkaError(KafkaError.OFFSET_OUT_OF_RANGE, failure.str())
        elif isinstance(error, java_class(f"{CONSUMER}.NoOffsetForPartitionException")):
            lost, failure = error.partitions(), KafkaError(KafkaError._AUTO_OFFSET_RESET, failure.str())
        places = [_where(partition) for partition in lost]
        self._events += [(_event(place, OFFSET_INVALID, failure), failure) for place in places]
        if not places:
            self._events.append((Message(error=failure), failure))

    def _reached(self, parts: Collection[PartitionRecords]) -> Events:
        """Returns an event for each partition whose end was reached since the last call, with no records waiting."""
        self._ends_at = time.monotonic()
        waiting = {part.where for part in (*self._ahead, *parts)}
        events: Events = []
        for place in self.java.assignment():
            where = _where(place)
            position = self._known(place)
            if (
                where in waiting
                or position is None
                or position[0] != position[1]
                or self._ends.get(where) == position[0]
            ):
                continue
            self._ends[where] = position[0]
            error = KafkaError(KafkaError._PARTITION_EOF, "no more records")
            events.append((_event(where, position[0], error), error))
        return events

    def _known(self, place: Any) -> tuple[int, int] | None:
        """Returns a partition's position and its end, as of the last fetch; None before that."""
        try:
            position, lag = self.java.position(place, self._duration(0.0)), self.java.currentLag(place)
        except jpype().JException:  # not known yet, or not ours
            return None
        return (int(position), int(position) + int(lag.getAsLong())) if lag.isPresent() else None

    # The group.

    def subscribe(self, topics: Sequence[str], **callbacks: Callable[..., Any]) -> None:
        """Joins the group for these topics; calls `on_assign`, `on_revoke` and `on_lost` as the client library does:
        with all partitions, or, if the group moves them one by one, with those that come or go."""
        self._callbacks = callbacks
        listener = {
            "onPartitionsAssigned": lambda partitions: self._changed("on_assign", partitions),
            "onPartitionsRevoked": lambda partitions: self._changed("on_revoke", partitions),
            "onPartitionsLost": lambda partitions: self._changed("on_lost", partitions),
        }
        proxy = jpype().JProxy(f"{CONSUMER}.ConsumerRebalanceListener", dict=listener)
        with _Translated():
            self.java.subscribe(java_class("java.util.ArrayList")(list(topics)), proxy)

    def _changed(self, name: str, partitions: Any) -> None:
        self.group_metadata = self.java.groupMetadata()
        places = [_where(partition) for partition in partitions]
        is_news = places or name == "on_assign"  # the first assignment may be of nothing
        if is_news and self._raised is None and name in self._callbacks:
            try:
                self._callbacks[name](self, [ClientPartition(*place) for place in places])
            except BaseException as error:
                self._raised = error
        self._drop(set(places))

    def _drop(self, places: Collection[TopicPartition]) -> None:
        """Drops records of these partitions that were read and not returned yet, and events without a partition."""
        self._ahead = [part for part in self._ahead if part.where not in places]
        self._events = [
            (message, error) for message, error in self._events if message.topic() and _of(message) not in places
        ]
        self._ends = {where: end for where, end in self._ends.items() if where not in places}

    def assignment(self) -> list[ClientPartition]:
        """Returns all partitions that the group has assigned."""
        return [ClientPartition(*_where(place)) for place in self.java.assignment()]

    def assign(self, partitions: Collection[ClientPartition]) -> None:
        """Reads these partitions from these offsets, and no others."""
        places = {partition_of(partition) for partition in partitions}
        mine = {_where(place): place for place in self.java.assignment()}
        self._drop(mine.keys() | places)
        with _Translated():
            self.java.pause(self._set_of(mine[place] for place in mine.keys() - places))
            self.java.resume(self._set_of(mine[place] for place in mine.keys() & places))
        self.incremental_assign([partition for partition in partitions if partition_of(partition) in mine])

    def incremental_assign(self, partitions: Collection[ClientPartition]) -> None:
        """Reads these partitions from these offsets; leaves others unchanged."""
        with _Translated():
            for partition in partitions:
                place = self._place_of(partition_of(partition))
                if partition.offset in (OFFSET_BEGINNING, OFFSET_END):
                    seek = self.java.seekToBeginning if partition.offset == OFFSET_BEGINNING else self.java.seekToEnd
                    seek(self._set_of([place]))
                else:
                    self.java.seek(place, jpype().JLong(partition.offset))

    def pause(self, partitions: Collection[ClientPartition]) -> None:
        """Pauses these partitions; records that were read ahead are read again."""
        with _Translated():
            self._give_back()
            self.java.pause(self._mine(partitions))

    def resume(self, partitions: Collection[ClientPartition]) -> None:
        """Resumes these partitions."""
        with _Translated():
            self.java.resume(self._mine(partitions))

    def _give_back(self) -> None:
        """Seeks in each partition back to the first record that was read ahead."""
        begins: dict[TopicPartition, int] = {}
        for part in self._ahead:
            begins.setdefault(part.where, part.begin)
        self._ahead.clear()
        for where, offset in begins.items():
            self.java.seek(self._place_of(where), jpype().JLong(offset))

    def _mine(self, partitions: Collection[ClientPartition]) -> Any:
        mine = self.java.assignment()
        places = [self._place_of(partition_of(partition)) for partition in partitions]
        return self._set_of(place for place in places if mine.contains(place))

    # Offsets.

    def commit(self, *, offsets: Collection[ClientPartition], asynchronous: bool) -> None:
        """Commits offsets; an asynchronous commit's result goes to `on_commit`. Raises KafkaException."""
        java_offsets = self._map()
        for offset in offsets:
            epoch = offset.leader_epoch
            leader_epoch = self._optional.empty() if epoch in (None, NO_EPOCH) else self._optional.of(_integer(epoch))
            place = self._place_of(partition_of(offset))
            java_offsets.put(
                place, self._kept_offset(jpype().JLong(offset.offset), leader_epoch, offset.metadata or "")
            )
        with _Translated():
            if asynchronous:
                self.java.commitAsync(java_offsets, self._answers)
            else:
                self.java.commitSync(java_offsets, self._duration(COMMIT_SECONDS))

    def _committed(self, offsets: Any, error: Any) -> None:
        failure = None if error is None else kafka_error(error)
        listed = [
            ClientPartition(*_where(entry.getKey()), int(entry.getValue().offset()))
            for entry in (() if offsets is None else offsets.entrySet())
        ]
        self._order.on_commit(failure, listed)

    def committed(self, partitions: Collection[ClientPartition], timeout: float) -> list[ClientPartition]:
        """Returns the group's offsets for these partitions. Raises KafkaException."""
        places = {partition_of(partition): partition for partition in partitions}
        with _Translated():
            answer = self.java.committed(self._set_of(map(self._place_of, places)), self._duration(timeout))
        return [_shown(where, answer.get(self._place_of(where))) for where in places]

    def get_watermark_offsets(
        self, partition: ClientPartition, timeout: float = COMMIT_SECONDS, *, cached: bool = False
    ) -> tuple[int, int] | None:
        """Returns begin and end of a partition's log; with `cached` the end as of the last fetch, and the position in
        place of the beginning."""
        place = self._place_of(partition_of(partition))
        if cached:
            return self._known(place)
        with _Translated():
            begin, end = (
                ask(self._set_of([place]), self._duration(timeout)).get(place)
                for ask in (self.java.beginningOffsets, self.java.endOffsets)
            )
        return int(begin), int(end)

    def list_topics(self, *, timeout: float) -> TopicsMetadata:
        """Returns all topics. Raises KafkaException."""
        with _Translated():
            topics = self.java.listTopics(self._duration(timeout))
        return TopicsMetadata({str(entry.getKey()): TopicMetadata(entry.getValue()) for entry in topics.entrySet()})

    def close(self) -> None:
        """Closes the consumer without further callbacks; as a static member it keeps its place."""
        self._callbacks = {}
        try:
            self.java.close()
        except jpype().JException:
            return  # the copy run has ended

    def _duration(self, seconds: float) -> Any:
        duration = self._durations.get(seconds)
        if duration is None:
            duration = java_class("java.time.Duration").ofMillis(jpype().JLong(round(seconds * 1000)))
            self._durations[seconds] = duration
        return duration

    def _place_of(self, where: TopicPartition) -> Any:
        place = self._places.get(where)
        if place is None:
            place = self._places[where] = self._place(where.topic, jpype().JInt(where.partition))
        return place

    def _set_of(self, places: Iterable[Any]) -> Any:
        java_set = self._set()
        for place in places:
            java_set.add(place)
        return java_set


class _Translated:
    """Raises KafkaException for what Java throws within."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: Any, error: Any, _trace: Any) -> None:
        if error is not None and isinstance(error, jpype().JException):
            raise kafka_exception(error) from None


def _where(place: Any) -> TopicPartition:
    return TopicPartition(str(place.topic()), int(place.partition()))


def _of(event: Message) -> TopicPartition:
    return TopicPartition(event.topic(), event.partition())


def _event(where: TopicPartition, offset: int, error: KafkaError) -> Message:
    return Message(topic=where.topic, partition=where.partition, offset=offset, error=error)


def _shown(where: TopicPartition, committed: Any) -> ClientPartition:
    if committed is None:
        return ClientPartition(*where, OFFSET_INVALID)
    epoch = committed.leaderEpoch()
    leader_epoch = int(epoch.get().intValue()) if epoch.isPresent() else NO_EPOCH
    return ClientPartition(*where, int(committed.offset()), str(committed.metadata()), leader_epoch)


def _integer(number: int) -> Any:
    return java_class("java.lang.Integer")(jpype().JInt(number))
