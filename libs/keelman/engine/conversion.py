"""From what readers give to what goes into Kafka, and from what comes out of it to what writers get: converters, and
between them a connector's transforms.

Without transforms a batch stays in columns. With them it is taken apart into records, and put together again by topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from keelman.connect.chain import Chain
from keelman.connect.columns import ColumnBatch, StructColumn
from keelman.connect.converters import Converter, converter_for
from keelman.connect.record import Header, Record
from keelman.connect.records import Column, Headers, Origin, SinkBatch, SourceBatch
from keelman.connect.schema import OPTIONAL_BYTES, Schema

Payloads = list[bytes | None]


@dataclass(slots=True)
class _Rows:
    """Records of one topic, in order, as columns again. `origins` are their indices in the batch they come from."""

    values: list[Any] = field(default_factory=list)
    schemas: list[Schema | None] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    key_schemas: list[Schema | None] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    headers: list[list[Header]] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)

    def add(self, record: Record, origin: int) -> None:
        """Puts a record behind."""
        self.values.append(record.value)
        self.schemas.append(record.value_schema)
        self.keys.append(record.key)
        self.key_schemas.append(record.key_schema)
        self.partitions.append(record.partition)
        self.times.append(record.timestamp_ms)
        self.headers.append(record.headers)
        self.origins.append(origin)


class _Conversion:
    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str]) -> None:
        """Raises ConfigValueError when a converter or a transform is not legal."""
        self._values = converter_for("value", config, worker)
        self._keys = converter_for("key", config, worker)
        self._headers = converter_for("header", config, worker)
        self._chain = Chain(config)
        self.plain = not self._chain.steps
        """Without transforms."""

    def _raw(self, header: Header) -> tuple[str, bytes | None]:
        if header.raw is not None:
            return header.name, header.raw
        return header.name, self._headers.from_connect(Column([header.value], header.schema))[0]

    def _header(self, name: str, raw: bytes | None) -> Header:
        column = self._headers.to_connect([raw]).texts()
        return Header(name, column.schema_of(0), column.values[0], raw)


class SourceConversion(_Conversion):
    """Of a source task."""

    def payloads(self, batch: SourceBatch) -> Iterator[tuple[SourceBatch, Payloads, Payloads | None]]:
        """The batch for each topic, with its values and keys as payloads. Raises ConnectError."""
        if not self.plain:
            whole = self._at_once(batch)
            yield from self._transformed(batch) if whole is None else (whole,)
        elif batch.raw:
            yield batch, batch.values.values, None if batch.keys is None else batch.keys.values
        else:
            keys = None if batch.keys is None else self._keys.from_connect(batch.keys)
            yield batch, self._values.from_connect(batch.values), keys

    def _at_once(self, batch: SourceBatch) -> tuple[SourceBatch, Payloads, Payloads | None] | None:
        """The same for records of one shape, in columns; None where each has to be looked at."""
        if batch.raw or batch.headers is not None or batch.values.schemas is not None or not batch.values.values:
            return None
        if batch.keys is not None and batch.keys.schemas is not None:
            return None
        columns = ColumnBatch(
            batch.topic, len(batch.values.values), batch.values, batch.keys, batch.partitions, batch.timestamps_ms
        )
        if not self._chain.columnar(columns):
            return None
        values = _at_once(self._values, columns.value, columns.count)
        keys = None if columns.key is None else _at_once(self._keys, columns.key, columns.count)
        if values is None or (keys is None and columns.key is not None):
            return None
        headers = None
        if columns.headers:
            headers = [tuple(self._raw(header) for header in columns.headers)] * columns.count
        return replace(batch, topic=columns.topic, headers=headers), values, keys

    def _transformed(self, batch: SourceBatch) -> Iterator[tuple[SourceBatch, Payloads, Payloads | None]]:
        topics: dict[str, _Rows] = {}
        for index, record in enumerate(self._records(batch)):
            after = self._chain.apply(record)
            if after is not None:
                topics.setdefault(after.topic, _Rows()).add(after, index)
        for topic, rows in topics.items():
            made = replace(
                batch,
                topic=topic,
                values=Column(rows.values, schemas=rows.schemas),
                keys=Column(rows.keys, schemas=rows.key_schemas),
                partitions=rows.partitions if any(p is not None for p in rows.partitions) else None,
                timestamps_ms=rows.times if any(t is not None for t in rows.times) else None,
                headers=self._all_headers(rows.headers),
                delivered=_moved(batch, rows.origins),
            )
            values, keys = _payloads(self._values, made.values, batch), _payloads(self._keys, made.keys, batch)
            yield made, values, keys if any(key is not None for key in keys) else None

    def _all_headers(self, headers: list[list[Header]]) -> list[Headers] | None:
        if not any(headers):
            return None
        return [tuple(self._raw(header) for header in one) for one in headers]

    def _records(self, batch: SourceBatch) -> Iterator[Record]:
        values = _typed(batch, batch.values)
        keys = None if batch.keys is None else _typed(batch, batch.keys)
        for n, value in enumerate(values.values):
            yield Record(
                batch.topic,
                None if batch.partitions is None else batch.partitions[n],
                None if keys is None else keys.schema_of(n),
                None if keys is None else keys.values[n],
                values.schema_of(n),
                value,
                None if batch.timestamps_ms is None else batch.timestamps_ms[n],
                [] if batch.headers is None else [self._header(name, raw) for name, raw in batch.headers[n] or ()],
            )


def _at_once(converter: Converter, column: Column | StructColumn, count: int) -> Payloads | None:
    if isinstance(column, Column):
        return converter.from_connect(column)
    return cast("Payloads | None", converter.from_structs(column, count))


def _typed(batch: SourceBatch, column: Column) -> Column:
    return Column(column.values, OPTIONAL_BYTES) if batch.raw else column.texts()


def _payloads(converter: Any, column: Column | None, batch: SourceBatch) -> Payloads:
    """What is bytes already stays so where the reader wants it."""
    assert column is not None
    if batch.raw and all(value is None or isinstance(value, bytes) for value in column.values):
        return column.values
    made: Payloads = converter.from_connect(column)
    return made


def _moved(batch: SourceBatch, origins: list[int]) -> Mapping[int, Any] | None:
    """Whom to tell, by the places that the records have now."""
    if not batch.delivered:
        return None
    return {at: batch.delivered[origin] for at, origin in enumerate(origins) if origin in batch.delivered}


class SinkConversion(_Conversion):
    """Of a sink task."""

    def batch(self, values: Payloads, keys: Payloads | None, origin: Origin | None, *, raw: bool) -> SinkBatch:
        """What the writer gets, with `raw` payloads. With transforms keys and origin must be given.

        Raises ConnectError.
        """
        if raw and self.plain:
            whole = None if keys is None else Column(keys, OPTIONAL_BYTES)
            return SinkBatch(Column(values, OPTIONAL_BYTES), whole, origin)
        made = SinkBatch(self._values.to_connect(values), None if keys is None else self._keys.to_connect(keys), origin)
        if self.plain:
            return made
        made = self._transformed(made)
        if raw and made.keys is not None:
            made.values = Column(self._values.from_connect(made.values), OPTIONAL_BYTES)
            made.keys = Column(self._keys.from_connect(made.keys), OPTIONAL_BYTES)
        return made

    def _transformed(self, batch: SinkBatch) -> SinkBatch:
        rows, topics = _Rows(), []
        for n, record in enumerate(self._records(batch)):
            after = self._chain.apply(record)
            if after is not None:
                rows.add(after, n)
                topics.append(after.topic)
        given = batch.origin
        assert given is not None
        origin = Origin(
            topics,
            [partition or 0 for partition in rows.partitions],
            [given.offsets[n] for n in rows.origins],
            rows.times,
            [[self._raw(header) for header in one] or None for one in rows.headers],
        )
        keys = Column(rows.keys, schemas=rows.key_schemas)
        return SinkBatch(Column(rows.values, schemas=rows.schemas), keys, origin)

    def _records(self, batch: SinkBatch) -> Iterator[Record]:
        values, origin = batch.values.texts(), batch.origin
        assert batch.keys is not None
        assert origin is not None
        keys = batch.keys.texts()
        for n, value in enumerate(values.values):
            yield Record(
                origin.topics[n],
                origin.partitions[n],
                keys.schema_of(n),
                keys.values[n],
                values.schema_of(n),
                value,
                origin.timestamps_ms[n],
                [self._header(name, raw) for name, raw in origin.headers[n] or ()],
                origin.offsets[n],
            )
