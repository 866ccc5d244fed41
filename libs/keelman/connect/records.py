"""Batches of records as columns: the output of readers and the input of writers. Copied per batch, never per record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, overload

from keelman.connect.java.text import utf8_text
from keelman.connect.schema import Schema

if TYPE_CHECKING:
    from keelman.connect.failed_record import FailedRecord
    from keelman.connect.record import Record

Partition = Mapping[str, Any]
"""A source partition: string keys, primitive values, e.g. {"filename": "/data/in"}."""

Offset = Mapping[str, Any]
"""A source offset: string keys, primitive values, e.g. {"position": 1234}."""

Headers = Sequence[tuple[str, bytes | None]]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Repeated(Sequence[T_co]):
    """The same value for each of a number of records, without a list of it."""

    value: T_co
    records: int

    def __len__(self) -> int:
        return self.records

    def __contains__(self, value: object) -> bool:
        return self.records > 0 and value == self.value

    def __iter__(self) -> Iterator[T_co]:
        return repeat(self.value, self.records)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Repeated[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | Repeated[T_co]:
        places = range(self.records)[index]
        return self.value if isinstance(places, int) else Repeated(self.value, len(places))


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(slots=True)
class Column:
    """The keys or the values of a batch, in record order.

    `schema` holds for all, unless `schemas` gives one for each. With `utf8` the values are strings kept as their UTF-8
    bytes: files and topics hold them so, and a copy that only moves strings never decodes them.
    """

    values: list[Any]
    schema: Schema | None = None
    schemas: list[Schema | None] | None = None
    utf8: bool = False

    @classmethod
    def of_each(cls, values: list[Any], schemas: list[Schema | None]) -> Column:
        """Builds a column from a schema for each value; identical schemas become one for all."""
        if schemas and all(schema is schemas[0] for schema in schemas):
            return cls(values, schemas[0])
        return cls(values, schemas=schemas)

    def texts(self) -> Column:
        """Returns the same column with strings as str; invalid UTF-8 becomes U+FFFD, as in Java."""
        if not self.utf8:
            return self
        values = [None if v is None else utf8_text(v) for v in self.values]
        return Column(values, self.schema, self.schemas)

    def schema_of(self, index: int) -> Schema | None:
        """Returns the schema of one record's value."""
        return self.schema if self.schemas is None else self.schemas[index]


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """One record batch in Kafka's format 2, to be written unchanged, except for its producer's identity and its
    offsets. https://kafka.apache.org/documentation/#recordbatch
    """

    data: bytes | memoryview
    partition: int
    records: int


class RawOffset(NamedTuple):
    """A source partition and its offset as finished key and value of the offset topic; a value of None deletes."""

    key: bytes
    value: bytes | None


@dataclass(slots=True)
class SourceBatch:
    """Records for one topic, and the source offsets that hold once the records are committed.

    `short`: the reader found less than it looked for, so that the engine commits at once. `partitions`,
    `timestamps_ms` and `headers` have one entry per record if the connector sets them; keys and values are converted.
    A time that all records share is best given as Repeated.
    `raw`: keys and values are payloads already, to be written unchanged, whatever the converters.
    With `packed` there are no keys and values: the records come in batches that are passed on whole, in this order.
    `boundary` ends the transaction after this batch, if the connector sets them (`transaction.boundary=connector`).
    `delivered` has, by index, callbacks for a record's partition and offset in its topic: called
    in the reading thread, before the reader's `committed`, or not at all. The index of a packed
    batch means its last record.
    `position` gives, for an index, the source partition and offset of that record alone; called for bad records only.
    `passed` is how much it reduces its reader's `left`; None for the number of records, or for the bytes written.
    `raw_offsets` are offsets, too, from a reader whose own code writes them: they are committed as these very bytes.
    `more`: the next batch, which is ready to be read, must be committed with this one, as when one offset covers
    records of several topics.
    `failed` are records, by index, that a reader which converts itself could not convert: their keys, values and
    headers are those for a dead letter.
    `read` are, in a preview, the records of a reader which converts itself, as they were read: it has converted none.
    """

    topic: str
    values: Column
    keys: Column | None = None
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None
    headers: Sequence[Headers] | None = None
    offsets: Sequence[tuple[Partition, Offset | None]] = field(default_factory=tuple)
    short: bool = False
    raw: bool = False
    packed: Sequence[PackedRecords] = ()
    boundary: Literal["commit", "abort"] | None = None
    delivered: Mapping[int, Callable[[int, int], None]] | None = None
    position: Callable[[int], tuple[Partition, Offset | None]] | None = None
    passed: int | None = None
    raw_offsets: Sequence[RawOffset] = ()
    more: bool = False
    failed: Mapping[int, FailedRecord] = field(default_factory=dict)
    read: Sequence[Record] = ()


@dataclass(slots=True)
class Origin:
    """The origin of each record of a sink's batch. A timestamp is None where the record has none."""

    topics: Sequence[str]
    partitions: Sequence[int]
    offsets: Sequence[int]
    timestamps_ms: Sequence[int | None]
    headers: Sequence[Headers | None]


@dataclass(slots=True)
class SinkBatch:
    """Records read from Kafka, in the order of each partition. `keys` is None unless the writer sets `wants_keys`,
    `origin` unless it sets `wants_origin`."""

    values: Column
    keys: Column | None = None
    origin: Origin | None = None
