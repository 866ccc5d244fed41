"""Converts what comes out of Kafka to what writers get: by converters, then by a connector's transforms."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.bad_records.dead_letter import RecordOrigin
from keelman.connect.bad_records.tolerance import RecordFailure
from keelman.connect.converters.converter import ByteArrayConverter, StringConverter
from keelman.connect.converters.header_converter import SimpleHeaderConverter
from keelman.connect.converters.topic_payloads import read
from keelman.connect.record import Record
from keelman.connect.records import Column, Headers, Origin, SinkBatch
from keelman.connect.schema import OPTIONAL_BYTES
from keelman.engine.records.bad_records import BadRecords, Original
from keelman.engine.records.conversion import Conversion
from keelman.engine.records.fused import Payloads
from keelman.engine.records.rows import Rows


class SinkConversion(Conversion):
    """Converts the records of a sink task."""

    def __init__(self, config: Mapping[str, str], worker: Mapping[str, str], bad: BadRecords | None = None) -> None:
        """Raises ConfigValueError when a converter or a transform is not legal."""
        super().__init__(config, worker, bad or BadRecords.of(config, sink=True))
        self.takes_any_key = isinstance(self._keys, StringConverter | ByteArrayConverter)
        """Whether no key is a bad one."""
        self.takes_any_header = isinstance(self._headers, SimpleHeaderConverter | StringConverter | ByteArrayConverter)
        """Whether no header is a bad one."""
        self.places: list[int] | None = None
        """Where each record of the last batch was among those given; None for all of them in their order."""

    def batch(self, values: Payloads, keys: Payloads | None, origin: Origin | None, *, raw: bool) -> SinkBatch:
        """Returns the writer's batch, with `raw` of payloads. With transforms keys and origin are required, and origin
        also for converters that depend on the topic and if headers may be bad.

        Raises what converters and transforms raise.
        """
        self.places = None
        if raw and self.plain:
            whole = None if keys is None else Column(keys, OPTIONAL_BYTES)
            return SinkBatch(Column(values, OPTIONAL_BYTES), whole, origin)
        if not self.plain:
            assert keys is not None
            assert origin is not None
            built, self.places = self._fused.sink(values, keys, origin, raw=raw)
            return built
        if not self.takes_any_header and origin is not None:
            self._check_headers(origin)
        topics = None if origin is None else origin.topics
        opened = None if keys is None else read(self._keys, keys, topics)
        return SinkBatch(read(self._values, values, topics), opened, origin)

    def one_by_one(self, values: Payloads, keys: Payloads, origin: Origin, *, raw: bool) -> SinkBatch:
        """Converts record by record and step by step, without the records that are passed over.

        Raises RecordRefused or RunFailure.
        """
        rows = Rows()
        for n in range(len(values)):
            whence = whence_of(origin, n)
            try:
                result = self._one(values[n], keys[n], origin, n, whence, raw=raw)
            except RecordFailure as failure:
                self._bad.pass_over(failure, lambda n=n: original(values, keys, origin, n))  # type: ignore[misc]
                continue
            if result is not None:
                record, own = result
                rows.add(record, own, n)
        self.places = rows.origins
        return _made(rows, origin)

    def _one(
        self, value: bytes | None, key: bytes | None, origin: Origin, n: int, whence: RecordOrigin, *, raw: bool
    ) -> tuple[Record, Headers] | None:
        """One record with its headers as bytes, None when a transform dropped it. Raises RecordFailure."""
        if raw and self.plain:
            keyed, valued = Column([key], OPTIONAL_BYTES), Column([value], OPTIONAL_BYTES)
        else:
            keyed, valued = self.decode("key", key, whence), self.decode("value", value, whence)
        own = origin.headers[n] or ()
        record = Record(
            origin.topics[n],
            origin.partitions[n],
            keyed.schema_of(0),
            keyed.values[0],
            valued.schema_of(0),
            valued.values[0],
            origin.timestamps_ms[n],
            [] if self.plain else self.decode_headers(own, whence),
            origin.offsets[n],
        )
        if self.plain:
            if not (raw or self.takes_any_header):
                self.decode_headers(own, whence)
            return record, own
        transformed = self.transform(record, whence)
        if transformed is None:
            return None
        if raw:
            transformed.key = self.encode(
                "key", Column([transformed.key], transformed.key_schema), whence, transformed.topic
            )
            transformed.value = self.encode(
                "value", Column([transformed.value], transformed.value_schema), whence, transformed.topic
            )
            transformed.key_schema = transformed.value_schema = OPTIONAL_BYTES
        return transformed, self.encode_headers(transformed.headers, whence)

    def _check_headers(self, origin: Origin) -> None:
        for headers in origin.headers:
            for name, raw in headers or ():
                self._header(name, raw)


def _made(rows: Rows, whole: Origin) -> SinkBatch:
    origin = Origin(
        rows.topics,
        [partition or 0 for partition in rows.partitions],
        [whole.offsets[n] for n in rows.origins],
        rows.times,
        [headers or None for headers in rows.headers],
    )
    keys = Column(rows.keys, schemas=rows.key_schemas)
    return SinkBatch(Column(rows.values, schemas=rows.schemas), keys, origin)


def whence_of(origin: Origin, n: int) -> RecordOrigin:
    """Where a record was in Kafka."""
    return RecordOrigin(origin.topics[n], origin.partitions[n], origin.offsets[n])


def original(values: Payloads, keys: Payloads, origin: Origin, n: int) -> Original:
    """A record as it was in Kafka, for a dead letter."""
    return Original(keys[n], values[n], origin.headers[n] or (), origin.timestamps_ms[n])
