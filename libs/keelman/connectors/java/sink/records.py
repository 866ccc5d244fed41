"""Makes Java's `SinkRecord`s of what Kafka's consumer has read, by a loop that runs in Java: no record is seen here."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from keelman.connectors.java.consumer.records import JavaRecords
from keelman.connectors.java.handles import Handles, call
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.steps.record_steps import RecordSteps

CONNECT, COMMON = "org.apache.kafka.connect", "org.apache.kafka.common"
RECORD = "org.apache.kafka.clients.consumer.ConsumerRecord"


class SinkLoops:
    """Makes one task's SinkRecords; used by one thread at a time, but for `size`."""

    def __init__(self, steps: RecordSteps) -> None:
        self._h = Handles()
        self._steps = steps
        self._from = java_class(RECORD)
        self._record = java_class(f"{CONNECT}.sink.SinkRecord")
        self._both = java_class(f"{CONNECT}.data.SchemaAndValue")
        self._all = java_class(f"{COMMON}.header.Headers")
        self._made = java_class(f"{CONNECT}.header.ConnectHeaders")
        self._list = java_class("java.util.ArrayList")
        self._types = java_class(f"{COMMON}.record.TimestampType")
        self._sum = self._sizes()

    def made(self, records: JavaRecords) -> Any:
        """Returns a Java list of the task's records, without those that a transform dropped.

        Raises the error of a converter or a transform, for any record."""
        java_records = self._list(len(records))
        for part in records.parts:
            call(self._loop, part.records, java_records)
        return java_records

    def size(self, records: Any) -> int:
        """Bytes of all keys and values in a list of the consumer's records."""
        return int(call(self._sum, records))

    @cached_property
    def _loop(self) -> Any:
        """(records of the consumer, list) -> void"""
        h = self._h
        make = self._making()
        for step in self._steps.transforms:
            apply = h.method(step.kind, "apply", java_class(f"{CONNECT}.connector.ConnectRecord"), step.parameter)
            make = h.then(make, h.unless_null(h.retyped(apply.bindTo(step.target), self._record, self._record)))
        add = h.retyped(h.method(self._list, "add", h.bool, h.object), h.void, self._list, self._record)
        add = h.spread(add, [self._record, self._list], 1, 0)
        add = h.of.guardWithTest(h.is_null(self._record), h.of.empty(add.type()), add)
        return h.for_each(h.of.collectArguments(add, 0, make), self._list)

    def _making(self) -> Any:
        """(a record of the consumer) -> SinkRecord

        Source: `WorkerSinkTask.convertAndTransformRecord` of Kafka Connect 4.3."""
        h, both, string = self._h, self._both, self._h.string
        schema, long = java_class(f"{CONNECT}.data.Schema"), java_class("java.lang.Long")
        make = h.constructor(
            self._record, string, h.int, schema, h.object, schema, h.object, h.long, long, self._types, h.iterable
        )
        opened = [h.method(both, "schema", schema), h.method(both, "value", h.object)]
        make = h.of.filterArguments(make, 2, [*opened, *opened])
        behind = [h.long, long, self._types, h.iterable]
        make = h.spread(make, [string, h.int, both, both, *behind], 0, 1, 2, 2, 3, 3, 4, 5, 6, 7)
        check = h.static(java_class(f"{CONNECT}.util.ConnectUtils"), "checkAndConvertTimestamp", long, long)
        got = [
            self._get("topic", string),
            self._get("partition", h.int),
            self._opened("key"),
            self._opened("value"),
            self._get("offset", h.long),
            h.then(h.retyped(self._get("timestamp", h.long), long, self._from), check),
            self._get("timestampType", self._types),
            h.retyped(self._headers(), h.iterable, self._from),
        ]
        make = h.of.filterArguments(make, 0, got)
        return h.spread(make, [self._from], *([0] * len(got)))

    def _get(self, name: str, returned: Any) -> Any:
        """(a record of the consumer) -> one of its properties"""
        return self._h.method(self._from, name, returned)

    def _opened(self, role: str) -> Any:
        """(a record of the consumer) -> SchemaAndValue of its key or value"""
        h = self._h
        converter = self._steps.key if role == "key" else self._steps.value
        kind = java_class(f"{CONNECT}.storage.Converter")
        opened = h.method(kind, "toConnectData", self._both, h.string, self._all, h.bytes).bindTo(converter)
        payload = h.retyped(self._get(role, h.object), h.bytes, self._from)
        got = [self._get("topic", h.string), self._get("headers", self._all), payload]
        return h.spread(h.of.filterArguments(opened, 0, got), [self._from], 0, 0, 0)

    def _headers(self) -> Any:
        """(a record of the consumer) -> its headers, converted"""
        h, headers, header = self._h, self._made, java_class(f"{COMMON}.header.Header")
        kind = java_class(f"{CONNECT}.storage.HeaderConverter")
        key, value = h.method(header, "key", h.string), h.method(header, "value", h.bytes)
        opened = h.method(kind, "toConnectHeader", self._both, h.string, h.string, h.bytes).bindTo(self._steps.headers)
        opened = h.spread(h.of.filterArguments(opened, 1, [key, value]), [header, h.string], 1, 0, 0)
        all_headers = java_class(f"{CONNECT}.header.Headers")
        add = h.retyped(
            h.method(headers, "add", all_headers, h.string, self._both), headers, headers, h.string, self._both
        )
        add = h.of.collectArguments(h.of.filterArguments(add, 1, [key]), 2, opened)  # (headers, one, one, topic)
        body = h.retyped(add, headers, headers, h.object, h.object, h.string)
        body = h.spread(body, [headers, h.object, h.iterable, h.string], 0, 1, 1, 3)
        loop = h.of.iteratedLoop(h.none, h.of.dropArguments(h.constructor(headers), 0, [h.iterable, h.string]), body)
        got = [h.retyped(self._get("headers", self._all), h.iterable, self._from), self._get("topic", h.string)]
        return h.spread(h.of.filterArguments(loop, 0, got), [self._from], 0, 0)

    def _sizes(self) -> Any:
        """(records of the consumer) -> bytes of their keys and values"""
        h = self._h
        add, larger = (
            h.static(java_class("java.lang.Math"), name, h.int, h.int, h.int) for name in ("addExact", "max")
        )
        long_sum = h.static(java_class("java.lang.Long"), "sum", h.long, h.long, h.long)
        size = [
            h.then(self._get(f"serialized{role}Size", h.int), h.of.insertArguments(larger, 1, [jpype().JInt(0)]))
            for role in ("Key", "Value")
        ]
        both = h.spread(h.of.filterArguments(add, 0, size), [self._from], 0, 0)
        body = h.of.collectArguments(long_sum, 1, h.retyped(both, h.long, h.object))
        init = h.of.dropArguments(h.constant(h.long, jpype().JLong(0)), 0, [h.iterable])
        return h.of.iteratedLoop(h.none, init, h.of.dropArguments(body, 2, [h.iterable]))
