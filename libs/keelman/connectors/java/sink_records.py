"""Makes Java's `SinkRecord`s of what was fetched: columns of bytes cross the border, a loop in Java does the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from struct import pack
from typing import Any

from keelman.connect.records import Headers, Origin
from keelman.connectors.java.handles import Handles, call
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.record_buffer import ColumnBuffer
from keelman.connectors.java.record_steps import RecordSteps

CONNECT, COMMON = "org.apache.kafka.connect", "org.apache.kafka.common"
PIECE_BYTES = 4 << 20
NO_TIME = -1
_NULL = pack("i", -1)


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records as they are in Kafka."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    origin: Origin

    def __len__(self) -> int:
        return len(self.values)

    def part(self, begin: int, end: int) -> Fetched:
        """Those from one index up to another."""
        came = self.origin
        return Fetched(
            self.values[begin:end],
            self.keys[begin:end],
            Origin(
                came.topics[begin:end],
                came.partitions[begin:end],
                came.offsets[begin:end],
                came.timestamps_ms[begin:end],
                came.headers[begin:end],
            ),
        )


class SinkLoops:
    """Of one task; used by one thread at a time."""

    def __init__(self, steps: RecordSteps) -> None:
        self._h = Handles()
        self._steps = steps
        self._record = java_class(f"{CONNECT}.sink.SinkRecord")
        self._both = java_class(f"{CONNECT}.data.SchemaAndValue")
        self._raw = java_class(f"{COMMON}.header.internals.RecordHeaders")
        self._all = java_class(f"{COMMON}.header.Headers")
        self._made = java_class(f"{CONNECT}.header.ConnectHeaders")
        self._list = java_class("java.util.ArrayList")
        self._ints = java_class("java.nio.IntBuffer")
        self._longs = java_class("java.nio.LongBuffer")
        self._bytes = java_class("java.nio.ByteBuffer")
        self._types = java_class(f"{COMMON}.record.TimestampType")
        self._columns = _Columns()

    # To compose a loop takes tenths of a second: most tasks need one of the two.

    @cached_property
    def _plain(self) -> Any:
        return self._loop(self._without_headers(), self._no_headers())

    @cached_property
    def _with_headers(self) -> Any:
        return self._loop(self._raw_headers(), self._converted_headers())

    def made(self, records: Fetched) -> Any:
        """A Java list of the records as the task gets them, without those that a transform dropped.

        Raises what a converter or a transform raises, of whichever record."""
        found = self._list(len(records))
        self._make(records, found)
        return found

    def _make(self, records: Fetched, found: Any) -> None:
        came, columns = records.origin, self._columns
        key_sizes, keys = _payloads(records.keys)
        value_sizes, values = _payloads(records.values)
        if len(keys) + len(values) > PIECE_BYTES and len(records) > 1:
            for part in _pieces(records):
                self._make(part, found)
            return
        stamps: Any = came.timestamps_ms
        times = [NO_TIME if one is None else one for one in stamps] if None in stamps else stamps
        headed = any(came.headers)
        counts, header_sizes, headers = _headers(came.headers) if headed else (b"", b"", b"")
        offsets, times = columns.offsets.put(_longs(came.offsets)), columns.times.put(_longs(times))
        raw = columns.header_counts.put(counts), columns.header_sizes.put(header_sizes), columns.headers.put(headers)
        keyed = columns.key_sizes.put(key_sizes), columns.keys.put(keys)
        valued = columns.value_sizes.put(value_sizes), columns.values.put(values)
        loop = self._with_headers if headed else self._plain
        for (topic, partition, timed), number in _runs(came):
            call(
                loop,
                jpype().JInt(number),
                *raw,
                topic,
                jpype().JInt(partition),
                self._types.CREATE_TIME if timed else self._types.NO_TIMESTAMP_TYPE,
                *(*keyed, *valued, offsets, times, found),
            )

    def _loop(self, raw: Any, converted: Any) -> Any:
        """(number, counts, sizes and bytes of headers, topic, partition, type, sizes and bytes of keys, of values,
        offsets, times, list) -> void"""
        h = self._h
        make = h.of.collectArguments(self._making(converted), 0, raw)
        for step in self._steps.transforms:
            apply = h.method(step.kind, "apply", java_class(f"{CONNECT}.connector.ConnectRecord"), step.parameter)
            make = h.then(make, h.unless_null(h.retyped(apply.bindTo(step.target), self._record, self._record)))
        add = h.retyped(h.method(self._list, "add", h.bool, h.object), h.void, self._list, self._record)
        add = h.spread(add, [self._record, self._list], 1, 0)
        add = h.of.guardWithTest(h.is_null(self._record), h.of.empty(add.type()), add)
        body = h.of.collectArguments(add, 0, make)
        context = [body.type().parameterType(n) for n in range(body.type().parameterCount())]
        times = h.of.dropArguments(h.of.identity(h.int), 1, context)
        return h.of.countedLoop(times, h.none, h.of.dropArguments(body, 0, [h.int, h.int]))

    def _making(self, converted: Any) -> Any:
        """(raw headers, topic, partition, type, sizes and bytes of keys, of values, offsets, times) -> SinkRecord"""
        h, both, string = self._h, self._both, self._h.string
        schema, long = java_class(f"{CONNECT}.data.Schema"), java_class("java.lang.Long")
        make = h.constructor(
            self._record, string, h.int, schema, h.object, schema, h.object, h.long, long, self._types, h.iterable
        )
        opened = [h.method(both, "schema", schema), h.method(both, "value", h.object)]
        make = h.of.filterArguments(make, 2, [*opened, *opened])
        behind = [h.long, long, self._types, h.iterable]
        make = h.spread(make, [string, h.int, both, both, *behind], 0, 1, 2, 2, 3, 3, 4, 5, 6, 7)
        make = h.of.collectArguments(make, 7, h.retyped(converted, h.iterable, self._raw, string))
        take = h.method(self._longs, "get", h.long)
        check = h.static(java_class(f"{CONNECT}.util.ConnectUtils"), "checkAndConvertTimestamp", long, long)
        make = h.of.filterArguments(make, 4, [take, h.then(h.retyped(take, long, self._longs), check)])
        make = h.of.collectArguments(make, 3, self._payload_opened("value"))
        make = h.of.collectArguments(make, 2, self._payload_opened("key"))
        column = [self._ints, self._bytes]
        given = [self._raw, string, h.int, self._types, *column, *column, self._longs, self._longs]
        return h.spread(make, given, 1, 2, 1, 0, 4, 5, 1, 0, 6, 7, 8, 9, 3, 0, 1)

    def _payload_opened(self, role: str) -> Any:
        """(topic, raw headers, sizes, bytes) -> SchemaAndValue"""
        h = self._h
        converter = self._steps.key if role == "key" else self._steps.value
        kind = java_class(f"{CONNECT}.storage.Converter")
        opened = h.method(kind, "toConnectData", self._both, h.string, self._all, h.bytes).bindTo(converter)
        opened = h.retyped(opened, self._both, h.string, self._raw, h.bytes)
        return h.of.collectArguments(opened, 2, self._payload())

    def _payload(self) -> Any:
        """(sizes, bytes) -> byte[], the next one; null for a negative size"""
        h, integer = self._h, java_class("java.lang.Integer")
        read = h.retyped(h.method(self._bytes, "get", self._bytes, h.bytes), h.void, self._bytes, h.bytes)
        read = h.spread(read, [h.bytes, self._bytes], 1, 0)
        filled = h.of.foldArguments(h.of.dropArguments(h.of.identity(h.bytes), 1, [self._bytes]), read)
        filled = h.of.filterArguments(filled, 0, [h.of.arrayConstructor(h.bytes)])
        # The sign comes to where a cast to a boolean looks.
        sign = h.static(integer, "rotateLeft", h.int, h.int, h.int)
        sign = h.of.explicitCastArguments(h.of.insertArguments(sign, 1, [jpype().JInt(1)]), h.type(h.bool, h.int))
        chosen = h.of.guardWithTest(sign, h.constant(h.bytes, None, h.int, self._bytes), filled)
        return h.of.filterArguments(chosen, 0, [h.method(self._ints, "get", h.int)])

    def _without_headers(self) -> Any:
        """(counts, sizes, bytes) -> raw headers, none at all"""
        return self._h.of.dropArguments(self._h.constructor(self._raw), 0, [self._ints, self._ints, self._bytes])

    def _raw_headers(self) -> Any:
        """(counts, sizes, bytes) -> raw headers, the next record's"""
        h, context = self._h, [self._ints, self._ints, self._bytes]
        text = h.constructor(h.string, h.bytes, java_class("java.nio.charset.Charset"))
        utf8 = java_class("java.nio.charset.StandardCharsets").UTF_8
        name = h.then(self._payload(), h.of.insertArguments(text, 1, [utf8]))
        add = h.retyped(
            h.method(self._raw, "add", self._all, h.string, h.bytes), self._raw, self._raw, h.string, h.bytes
        )
        add = h.of.collectArguments(add, 2, self._payload())
        add = h.of.collectArguments(add, 1, name)  # (headers, sizes, bytes, sizes, bytes), the name first
        body = h.spread(add, [self._raw, h.int, *context], 0, 3, 4, 3, 4)
        count = h.of.dropArguments(h.method(self._ints, "get", h.int), 1, context[1:])
        return h.of.countedLoop(count, h.of.dropArguments(h.constructor(self._raw), 0, context), body)

    def _no_headers(self) -> Any:
        """(raw headers, topic) -> headers, none at all"""
        return self._h.of.dropArguments(self._h.constructor(self._made), 0, [self._raw, self._h.string])

    def _converted_headers(self) -> Any:
        """(raw headers, topic) -> headers"""
        h, made, one = self._h, self._made, java_class(f"{COMMON}.header.Header")
        kind = java_class(f"{CONNECT}.storage.HeaderConverter")
        key, value = h.method(one, "key", h.string), h.method(one, "value", h.bytes)
        opened = h.method(kind, "toConnectHeader", self._both, h.string, h.string, h.bytes).bindTo(self._steps.headers)
        opened = h.spread(h.of.filterArguments(opened, 1, [key, value]), [one, h.string], 1, 0, 0)
        all_headers = java_class(f"{CONNECT}.header.Headers")
        add = h.retyped(h.method(made, "add", all_headers, h.string, self._both), made, made, h.string, self._both)
        add = h.of.collectArguments(h.of.filterArguments(add, 1, [key]), 2, opened)  # (headers, one, one, topic)
        body = h.retyped(add, made, made, h.object, h.object, h.string)
        body = h.spread(body, [made, h.object, h.iterable, h.string], 0, 1, 1, 3)
        loop = h.of.iteratedLoop(h.none, h.of.dropArguments(h.constructor(made), 0, [h.iterable, h.string]), body)
        return h.retyped(loop, made, self._raw, h.string)


class _Columns:
    """Memory for the columns of one batch after another."""

    def __init__(self) -> None:
        self.offsets, self.times = ColumnBuffer("Long"), ColumnBuffer("Long")
        self.keys, self.values, self.headers = (ColumnBuffer() for _ in range(3))
        self.key_sizes, self.value_sizes, self.header_sizes, self.header_counts = (
            ColumnBuffer("Int") for _ in range(4)
        )


def _pieces(records: Fetched) -> Iterator[Fetched]:
    """Parts of so many bytes, or of a single record."""
    sizes = [len(v or b"") + len(k or b"") for v, k in zip(records.values, records.keys, strict=True)]
    begin = total = 0
    for end, size in enumerate(sizes):
        if total and total + size > PIECE_BYTES:
            yield records.part(begin, end)
            begin, total = end, 0
        total += size
    yield records.part(begin, len(records))


def _runs(came: Origin) -> Iterator[tuple[tuple[str, int, bool], int]]:
    """How many records with the same topic, partition and kind of time follow one another."""
    if None not in came.timestamps_ms and came.topics.count(came.topics[0]) == len(came.topics):
        for partition, group in groupby(came.partitions):
            yield (came.topics[0], partition, True), len(list(group))
        return
    timed = [one is not None for one in came.timestamps_ms]
    for place, rows in groupby(zip(came.topics, came.partitions, timed, strict=True)):
        yield place, len(list(rows))


def _longs(numbers: Sequence[int]) -> bytes:
    return pack(f"{len(numbers)}q", *numbers)


def _ints(numbers: Collection[int]) -> bytes:
    return pack(f"{len(numbers)}i", *numbers)


def _payloads(given: Sequence[bytes | None]) -> tuple[bytes, bytes]:
    """Their sizes, -1 for None, and all of them together."""
    nones = given.count(None)
    if nones == len(given):
        return _NULL * nones, b""
    if nones:
        return _ints([-1 if one is None else len(one) for one in given]), b"".join(filter(None, given))
    whole: Any = given
    return pack(f"{len(given)}i", *map(len, whole)), b"".join(whole)


def _headers(given: Sequence[Headers | None]) -> tuple[bytes, bytes, bytes]:
    """How many each record has; then the sizes of their names and values, and these themselves, in turn."""
    counts = _ints([len(one or ()) for one in given])
    encoded: Callable[[str], bytes] = lambda name: name.encode("utf-8", "surrogateescape")  # noqa: E731
    flat = [part for name, raw in chain.from_iterable(one or () for one in given) for part in (encoded(name), raw)]
    sizes, data = _payloads(flat)
    return counts, sizes, data
