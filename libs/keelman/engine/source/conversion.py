"""Converts what readers give to what goes into Kafka: by a connector's transforms, then by converters.

A batch stays in columns, with transforms too; only where that fails it is taken apart into records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from keelman.connect.bad_records.dead_letter import RecordOrigin
from keelman.connect.bad_records.tolerance import RecordFailure
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.failed_record import FailedRecord, Format, Stage
from keelman.connect.java.text import java_text
from keelman.connect.record import Header, Record
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import OPTIONAL_BYTES
from keelman.engine.control import CutShort
from keelman.engine.records.bad_records import BadRecords, Original
from keelman.engine.records.conversion import Conversion
from keelman.engine.records.fused import Payloads, Sent, moved
from keelman.engine.records.pieces import chosen, source_pieces
from keelman.engine.records.rows import Rows
from keelman.engine.records.size import Sizes, any_size, may_be_over

_STEPS = ("transforms", "predicates", "key.converter", "value.converter", "header.converter")
_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
PRODUCER_CLASS = "org.apache.kafka.connect.runtime.WorkerSourceTask"


class SourceConversion(Conversion):
    """Converts the records of a source task."""

    def __init__(
        self,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        bad: BadRecords | None = None,
        sizes: Callable[[str], Sizes] = any_size,
    ) -> None:
        """`sizes` returns the size limits of a record for a topic. Raises ConfigValueError when a converter or a
        transform is not legal."""
        super().__init__(config, worker, bad or BadRecords.of(config, sink=False))
        self._envelope = JsonConverter({})
        self._sizes = sizes
        self._producing = Stage("KAFKA_PRODUCE", PRODUCER_CLASS, "produce")

    def payloads(self, batch: SourceBatch) -> Iterator[Sent]:
        """The batch for each topic, with its values and keys as payloads. Raises ConnectError or RunFailure."""
        self._bad.took(len(batch.values.values))
        if batch.failed:
            batch = self._without_failed(batch)
        payloads_together = self._together(batch)
        if payloads_together is None:
            payloads_together = []
            for piece in source_pieces(batch):
                self._bad.beat()
                payloads_of_piece = self._together(piece)
                payloads_together += self._one_by_one(piece) if payloads_of_piece is None else payloads_of_piece
        yield from payloads_together

    def _without_failed(self, batch: SourceBatch) -> SourceBatch:
        """The batch without the records that its reader could not convert, which are passed over."""
        for n, failed in sorted(batch.failed.items()):
            failure = RecordFailure(failed.stage, failed.error, whence_of(batch, n))
            self._bad.pass_over(failure, lambda n=n, record=failed: self._failed(batch, n, record))  # type: ignore[misc]
        return chosen(batch, [n for n in range(len(batch.values.values)) if n not in batch.failed])

    def _failed(self, batch: SourceBatch, n: int, failed: FailedRecord) -> Original:
        original = self.original(batch, n)
        return replace(original, key_format=failed.key_format, value_format=failed.value_format)

    def _together(self, batch: SourceBatch) -> list[Sent] | None:
        """All records at once; None where some of them is a bad one, which shows when they are converted one by one."""
        try:
            entries = list(self._whole(batch))
        except CutShort:
            raise
        except Exception:  # the record at fault will raise it again
            return None
        return None if any(self._too_large(*entry) for entry in entries) else entries

    def _too_large(self, source_batch: SourceBatch, values: Payloads, keys: Payloads | None) -> bool:
        return may_be_over(values, keys, source_batch.headers, self._sizes(source_batch.topic).least)

    def _whole(self, batch: SourceBatch) -> Iterator[Sent]:
        if not self.plain:
            yield from self._fused.source(batch)
        elif batch.raw:
            yield batch, batch.values.values, None if batch.keys is None else batch.keys.values
        else:
            keys = None if batch.keys is None else self._keys.of_topic(batch.topic).from_connect(batch.keys)
            yield batch, self._values.of_topic(batch.topic).from_connect(batch.values), keys

    def _one_by_one(self, batch: SourceBatch) -> Iterator[Sent]:
        """Converts record by record and step by step, without the records that are passed over."""
        topics: dict[str, Rows] = {}
        values = _typed(batch, batch.values)
        keys = None if batch.keys is None else _typed(batch, batch.keys)
        for n in range(len(values.values)):
            whence = whence_of(batch, n)
            try:
                self._take(batch, _record(batch, values, keys, n, []), n, whence, topics)
            except RecordFailure as failure:
                self._bad.pass_over(failure, lambda n=n: self.original(batch, n))  # type: ignore[misc]
        for topic, good in topics.items():
            good_batch = replace(
                batch,
                topic=topic,
                values=Column(good.values),
                keys=Column(good.keys),
                partitions=good.partitions if any(p is not None for p in good.partitions) else None,
                timestamps_ms=good.times if any(t is not None for t in good.times) else None,
                headers=good.headers if any(good.headers) else None,
                delivered=moved(batch, good.origins),
            )
            yield good_batch, good.values, good.keys if any(key is not None for key in good.keys) else None

    def _take(self, batch: SourceBatch, record: Record, n: int, whence: RecordOrigin, topics: dict[str, Rows]) -> None:
        """One record into what goes to its topic. Raises RecordFailure."""
        headers = () if batch.headers is None else batch.headers[n] or ()
        if not self.plain:
            record.headers = self.decode_headers(headers, whence)
            transformed = self.transform(record, whence)
            if transformed is None:
                return
            record, headers = transformed, self.encode_headers(transformed.headers, whence)
        key, value = record.key, record.value
        if not (batch.raw and (key is None or isinstance(key, bytes))) and (batch.keys or not self.plain):
            key = self.encode("key", Column([key], record.key_schema), whence, record.topic)
        if not (batch.raw and (value is None or isinstance(value, bytes))):
            value = self.encode("value", Column([value], record.value_schema), whence, record.topic)
        size = self._sizes(record.topic).fault(key, value, headers)
        if size is not None:
            raise RecordFailure(self._producing, size, whence)
        record.key, record.value = key, value
        topics.setdefault(record.topic, Rows()).add(record, headers, n)

    def original(self, batch: SourceBatch, n: int) -> Original:
        """A record of a batch as it was read, for a dead letter."""
        key, key_format = self._enveloped(batch, batch.keys, n)
        value, value_format = self._enveloped(batch, batch.values, n)
        headers = () if batch.headers is None else batch.headers[n] or ()
        time = None if batch.timestamps_ms is None else batch.timestamps_ms[n]
        partition = None if batch.partitions is None else batch.partitions[n]
        return Original(key, value, headers, time, key_format, value_format, partition)

    def _enveloped(self, batch: SourceBatch, column: Column | None, n: int) -> tuple[bytes | None, Format]:
        value = None if column is None else column.values[n]
        if column is None or batch.raw or (value is None and column.schema_of(n) is None):
            return value, "bytes"
        texts = Column([value], column.schema_of(n), utf8=column.utf8).texts()
        try:
            return self._envelope.from_connect(texts)[0], "json"
        except Exception:  # it may be the very reason why it is a dead letter
            return _any_text(texts.values[0]).encode("utf-8", "replace"), "text"


def without_steps(config: Mapping[str, str]) -> dict[str, str]:
    """A connector's configuration without its transforms, and with converters that leave payloads as they are."""
    values = {key: value for key, value in config.items() if not key.startswith(_STEPS)}
    return {**values, "key.converter": _BYTES, "value.converter": _BYTES, "header.converter": _HEADERS}


def whence_of(batch: SourceBatch, n: int) -> RecordOrigin:
    """Returns the origin of a batch's record, as far as its reader reports it: the record's own, else the batch's."""
    if batch.position is not None:
        return RecordOrigin(batch.topic, None, None, *batch.position(n))
    if len(batch.offsets) != 1:
        return RecordOrigin(batch.topic)
    partition, offset = batch.offsets[0]
    return RecordOrigin(batch.topic, None, None, partition, offset)


def _any_text(value: object) -> str:
    try:
        return java_text(value)
    except Exception:  # nested too deeply, or hostile: that it was there is what can still be reported
        return type(value).__name__


def _record(batch: SourceBatch, values: Column, keys: Column | None, n: int, headers: list[Header]) -> Record:
    return Record(
        batch.topic,
        None if batch.partitions is None else batch.partitions[n],
        None if keys is None else keys.schema_of(n),
        None if keys is None else keys.values[n],
        values.schema_of(n),
        values.values[n],
        None if batch.timestamps_ms is None else batch.timestamps_ms[n],
        headers,
    )


def _typed(batch: SourceBatch, column: Column) -> Column:
    return Column(column.values, OPTIONAL_BYTES) if batch.raw else column.texts()
