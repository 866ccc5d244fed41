"""Records that Java's consumer has read: lists of Java, one for each partition, seen from here one by one at need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    Message,
)

from keelman.connect.records import TopicPartition
from keelman.connect.tasks.sink_source import WrittenRecord
from keelman.engine.sink.consumer.own_consumer import OwnRecords

_TIMES = {
    "CreateTime": TIMESTAMP_CREATE_TIME,
    "LogAppendTime": TIMESTAMP_LOG_APPEND_TIME,
    "NoTimestampType": TIMESTAMP_NOT_AVAILABLE,
}


@dataclass(frozen=True, slots=True)
class PartitionRecords:
    """Records of one partition that follow one another: a Java list, and how many are in it; at least one."""

    where: TopicPartition
    records: Any
    count: int

    def split(self, at: int) -> tuple[PartitionRecords, PartitionRecords]:
        """The first so many, and the rest."""
        first, rest = self.records.subList(0, at), self.records.subList(at, self.count)
        return PartitionRecords(self.where, first, at), PartitionRecords(self.where, rest, self.count - at)

    @property
    def begin(self) -> int:
        """The first one's offset."""
        return int(self.records.get(0).offset())


class Last:
    """Where a partition's last record is, in the words of a Message."""

    def __init__(self, part: PartitionRecords) -> None:
        record = part.records.get(part.count - 1)
        epoch = record.leaderEpoch()
        self._offset = int(record.offset())
        self._epoch = int(epoch.get().intValue()) if epoch.isPresent() else None

    def offset(self) -> int:
        """Returns its offset in its partition."""
        return self._offset

    def leader_epoch(self) -> int | None:
        """Returns the epoch of the leader that wrote it, if known."""
        return self._epoch


class JavaRecords(OwnRecords):
    """The records of one read: each stays in Java until it is used."""

    def __init__(
        self, parts: Sequence[PartitionRecords], size: int, events: Sequence[tuple[Message, KafkaError]] = ()
    ) -> None:
        self.parts = parts
        self.events = events
        self._size = size
        self._count = sum(part.count for part in parts)

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        return self._size

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        left = index
        for part in self.parts:
            if left < part.count:
                return message(part.records.get(left))
            left -= part.count
        raise IndexError(index)

    def each(self) -> Iterator[Any]:
        """Java's records, one by one."""
        for part in self.parts:
            yield from part.records

    def last_of_each(self) -> dict[tuple[str, int], Last]:
        """By topic and partition where its last record is."""
        return {(part.where.topic, part.where.partition): Last(part) for part in self.parts}

    def find(self, where: TopicPartition, offset: int) -> WrittenRecord | None:
        """Returns the record at this place, if it is among these records."""
        for part in self.parts:
            if part.where == where:
                for record in part.records:
                    if int(record.offset()) == offset:
                        return written(record)
        return None


def message(record: Any) -> Message:
    """A record of Java's as the client library has it."""
    time_type = _TIMES[str(record.timestampType().toString())]
    return Message(
        topic=str(record.topic()),
        partition=int(record.partition()),
        offset=int(record.offset()),
        key=raw(record.key()),
        value=raw(record.value()),
        headers=headers(record),
        timestamp=(time_type, int(record.timestamp())),
    )


def written(record: Any) -> WrittenRecord:
    """Returns a record in the form for a dead letter."""
    where = TopicPartition(str(record.topic()), int(record.partition()))
    time_ms = int(record.timestamp())
    written_record = WrittenRecord(where, int(record.offset()), raw(record.key()), raw(record.value()), headers(record))
    return (
        written_record
        if time_ms < 0
        else WrittenRecord(
            where, written_record.offset, written_record.key, written_record.value, written_record.headers, time_ms
        )
    )


def headers(record: Any) -> list[tuple[str, bytes | None]]:
    """Returns the headers of one record."""
    return [(str(header.key()), raw(header.value())) for header in record.headers()]


def raw(array: Any) -> bytes | None:
    """A Java byte[]."""
    return None if array is None else bytes(memoryview(array))
