"""Processes a poll's records in loops inside Java: transforms, converts, groups, packs, and notifies their task.

Records are `SourceRecord`s. What comes of one is an entry, a `Map.Entry` of the record as its task gave it and of the
`ProducerRecord` that it became, null where a transform dropped it: so that the task is notified with its own record.
"""

from __future__ import annotations

from typing import Any

from keelman.connectors.java.handles import Handles, call
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.steps.record_steps import RecordSteps

CONNECT, COMMON = "org.apache.kafka.connect", "org.apache.kafka.common"
CLIENTS = "org.apache.kafka.clients.producer"
BUFFER_BYTES = 1 << 20
UNKNOWN_SIZE = -1


class SourceLoops:
    """Processes the polls of one task; used by the thread of its copy run."""

    def __init__(self, steps: RecordSteps) -> None:
        self._h = h = Handles()
        self._record = java_class(f"{CONNECT}.source.SourceRecord")
        self._made = java_class(f"{CLIENTS}.ProducerRecord")
        self._entry = java_class("java.util.Map$Entry")
        self._headers = java_class(f"{COMMON}.header.internals.RecordHeaders")
        self._builder = java_class(f"{COMMON}.record.internal.MemoryRecordsBuilder")
        self._maps = java_class("java.util.LinkedHashMap")
        maps = java_class("java.util.Map")
        entry = self._entry_of(steps)
        by_topic = h.grouping(self._of_entry(h.unless_null(h.method(self._made, "topic", h.string))), *())
        self._convert = h.for_each(h.of.filterArguments(by_topic, 0, [entry]), maps)
        self._by_partition = h.for_each(h.grouping(self._partition_of_entry(), h.int), maps, h.int)
        self._pack = h.for_each(self._append(), self._builder, h.long)
        self._direct = java_class("java.nio.ByteBuffer").allocateDirect(BUFFER_BYTES)

    def converted(self, records: Any) -> dict[str | None, Any]:
        """Returns the records' entries by their target topic, in their order; dropped ones under None.

        Raises what a transform or a converter raises, of whichever record."""
        topics = self._maps()
        call(self._convert, records, topics)
        return {
            None if entry.getKey() is None else str(entry.getKey()): entry.getValue() for entry in topics.entrySet()
        }

    def by_partition(self, entries: Any, partitions: int) -> dict[int | None, Any]:
        """The entries for one topic by their partition: the record's own, else its key's by Kafka's hash; under None
        those without a key."""
        groups = self._maps()
        call(self._by_partition, entries, groups, jpype().JInt(partitions))
        return {
            None if entry.getKey() is None else int(entry.getKey()): entry.getValue() for entry in groups.entrySet()
        }

    def packed(self, entries: Any, compression: Any, now_ms: int) -> bytes:
        """The entries as one record batch of format 2."""
        library = jpype()
        long, short, integer = library.JLong, library.JShort, library.JInt
        stream = java_class(f"{COMMON}.utils.ByteBufferOutputStream")(self._direct.clear())
        time_type = java_class(f"{COMMON}.record.TimestampType").CREATE_TIME
        builder = self._builder(
            *(stream, library.JByte(2), compression, time_type, long(0), long(0), long(-1), short(-1), integer(-1)),
            *(False, False, integer(-1), integer((1 << 31) - 1)),
        )
        try:
            call(self._pack, entries, builder, long(now_ms))
            buffer = builder.build().buffer()
        except BaseException:
            builder.abort()
            raise
        data = memoryview(buffer) if buffer.isDirect() else memoryview(buffer.array())
        return bytes(data[: buffer.limit()])

    def _entry_of(self, steps: RecordSteps) -> Any:
        """(record) -> entry"""
        h, record = self._h, self._record
        make = self._producer_record(steps)
        if steps.transforms:
            identity = h.of.identity(record)
            for step in steps.transforms:
                apply = h.method(step.kind, "apply", java_class(f"{CONNECT}.connector.ConnectRecord"), step.parameter)
                identity = h.then(identity, h.unless_null(h.retyped(apply.bindTo(step.target), record, record)))
            make = h.then(identity, h.unless_null(make))
        pair = h.constructor(java_class("java.util.AbstractMap$SimpleImmutableEntry"), h.object, h.object)
        pair = h.retyped(pair, self._entry, record, self._made)
        return h.spread(h.of.filterArguments(pair, 1, [make]), [record], 0, 0)

    def _producer_record(self, steps: RecordSteps) -> Any:
        """(record) -> producer record, as Connect's AbstractWorkerSourceTask makes it: headers, key, then value."""
        h, record, headers = self._h, self._record, self._headers
        number, long = java_class("java.lang.Integer"), java_class("java.lang.Long")
        check = h.static(java_class(f"{CONNECT}.util.ConnectUtils"), "checkAndConvertTimestamp", long, long)
        make = h.constructor(self._made, h.string, number, long, h.object, h.object, h.iterable)
        make = h.of.filterArguments(make, 0, [self._get("topic", h.string), self._get("kafkaPartition", number)])
        make = h.of.filterArguments(make, 2, [h.then(self._get("timestamp", long), check)])
        key, value = (h.retyped(self._payload(steps, role), h.object, headers, record) for role in ("key", "value"))
        make = h.of.collectArguments(make, 4, value)
        make = h.of.collectArguments(make, 3, key)
        make = h.retyped(make, self._made, record, record, record, headers, record, headers, record, headers)
        make = h.spread(make, [headers, record], 1, 1, 1, 0, 1, 0, 1, 0)
        return h.of.foldArguments(make, self._converted_headers(steps))

    def _payload(self, steps: RecordSteps, role: str) -> Any:
        """(headers, record) -> byte[]"""
        h, record = self._h, self._record
        schema, all_headers = java_class(f"{CONNECT}.data.Schema"), java_class(f"{COMMON}.header.Headers")
        kind = java_class(f"{CONNECT}.storage.Converter")
        make = h.method(kind, "fromConnectData", h.bytes, h.string, all_headers, schema, h.object)
        make = make.bindTo(steps.key if role == "key" else steps.value)
        make = h.of.filterArguments(make, 0, [self._get("topic", h.string)])
        make = h.of.filterArguments(make, 2, [self._get(f"{role}Schema", schema), self._get(role, h.object)])
        make = h.retyped(make, h.bytes, record, self._headers, record, record)
        return h.spread(make, [self._headers, record], 1, 0, 1, 1)

    def _converted_headers(self, steps: RecordSteps) -> Any:
        """(record) -> headers"""
        h, headers = self._h, self._headers
        header, schema = java_class(f"{CONNECT}.header.Header"), java_class(f"{CONNECT}.data.Schema")
        kind, both = java_class(f"{CONNECT}.storage.HeaderConverter"), java_class(f"{COMMON}.header.Headers")
        raw = h.method(kind, "fromConnectHeader", h.bytes, h.string, h.string, schema, h.object)
        raw = raw.bindTo(steps.headers)
        key = h.method(header, "key", h.string)
        raw = h.of.filterArguments(
            raw, 1, [key, h.method(header, "schema", schema), h.method(header, "value", h.object)]
        )
        raw = h.spread(raw, [header, h.string], 1, 0, 0, 0)
        add = h.method(headers, "add", both, h.string, h.bytes)
        add = h.retyped(add, headers, headers, h.string, h.bytes)
        add = h.of.collectArguments(h.of.filterArguments(add, 1, [key]), 2, raw)  # (headers, one, one, topic)
        body = h.retyped(add, headers, headers, h.object, h.object, h.string)
        body = h.spread(body, [headers, h.object, h.iterable, h.string], 0, 1, 1, 3)
        loop = h.of.iteratedLoop(h.none, h.constructor(headers), body)  # (Iterable, topic)
        get_headers = self._get("headers", java_class(f"{CONNECT}.header.Headers"))
        get_headers = h.retyped(get_headers, h.iterable, self._record)
        loop = h.of.filterArguments(loop, 0, [get_headers, self._get("topic", h.string)])
        return h.spread(loop, [self._record], 0, 0)

    def _get(self, name: str, kind: Any) -> Any:
        return self._h.method(self._record, name, kind)

    def _of_entry(self, handle: Any) -> Any:
        """(entry) -> what the handle returns for its producer record."""
        value = self._h.retyped(self._h.method(self._entry, "getValue", self._h.object), self._made, self._entry)
        return self._h.then(value, handle)

    def _partition_of_entry(self) -> Any:
        """(entry, partitions of the topic) -> Integer"""
        h, record_class, number = self._h, self._made, java_class("java.lang.Integer")
        partitioner = java_class(f"{CLIENTS}.internals.BuiltInPartitioner")
        hashed = h.retyped(h.static(partitioner, "partitionForKey", h.int, h.bytes, h.int), number, h.bytes, h.int)
        key = h.retyped(h.method(record_class, "key", h.object), h.bytes, record_class)
        own = h.method(record_class, "partition", number)
        without_key = h.then(key, h.is_null(h.bytes))
        none = h.constant(number, None, record_class, h.int)
        by_key = h.of.guardWithTest(without_key, none, h.of.filterArguments(hashed, 0, [key]))
        own_too = h.of.dropArguments(own, 1, [h.int])
        chosen = h.of.guardWithTest(h.then(own, h.is_null(number)), by_key, own_too)
        return h.of.filterArguments(chosen, 0, [self._of_entry(h.of.identity(record_class))])

    def _append(self) -> Any:
        """(entry, builder, now) -> void"""
        h, record_class, builder = self._h, self._made, self._builder
        long = java_class("java.lang.Long")
        array: Any = jpype().JArray(java_class(f"{COMMON}.header.Header"))
        time = h.method(record_class, "timestamp", long)
        own_time = h.of.dropArguments(h.retyped(time, h.long, record_class), 1, [h.long])
        now = h.of.dropArguments(h.of.identity(h.long), 0, [record_class])
        time = h.of.guardWithTest(h.then(time, h.is_null(long)), now, own_time)
        key, value = (
            h.retyped(h.method(record_class, name, h.object), h.bytes, record_class) for name in ("key", "value")
        )
        all_headers = java_class(f"{COMMON}.header.Headers")
        headers = h.then(h.method(record_class, "headers", all_headers), h.method(all_headers, "toArray", array))
        append = h.method(builder, "append", h.void, h.long, h.bytes, h.bytes, array)
        append = h.of.filterArguments(append, 2, [key, value, headers])
        append = h.of.collectArguments(append, 1, time)  # (builder, made, now, made, made, made)
        append = h.spread(append, [record_class, builder, h.long], 1, 0, 2, 0, 0, 0)
        return h.of.filterArguments(append, 0, [self._of_entry(h.of.identity(record_class))])


class TaskLoops:
    """Notes the offsets of many records, gets the ends of transactions from their task, and notifies it of commits;
    used by the task's own thread."""

    def __init__(self, task: Any, writer: Any, transactions: Any = None) -> None:
        """`writer` is Connect's OffsetStorageWriter, `transactions` its WorkerTransactionContext where the connector
        defines its boundaries."""
        self._h = h = Handles()
        self._record = java_class(f"{CONNECT}.source.SourceRecord")
        maps = java_class("java.util.Map")
        offset = h.method(java_class(f"{CONNECT}.storage.OffsetStorageWriter"), "offset", h.void, maps, maps)
        get = [h.method(self._record, name, maps) for name in ("sourcePartition", "sourceOffset")]
        offset = h.of.filterArguments(offset.bindTo(writer), 0, get)
        self._offsets = h.for_each(h.spread(offset, [self._record], 0, 0))
        metadata = java_class(f"{CLIENTS}.RecordMetadata")
        self.wants_records = _overrides(task, "commitRecord", self._record.class_, metadata.class_)
        self.wants_commits = _overrides(task, "commit")
        """Whether its class, or one above it, has its own commitRecord and commit."""
        self._task = task
        self._thrown = java_class("java.util.ArrayList")()
        if self.wants_records:
            self._commit = self._committing()
            self._drop = self._dropping()
        self._acts = None if transactions is None else self._asking(transactions)

    def note_offsets(self, records: Any) -> None:
        """The writer has the offsets of all these records, of each source partition the last one counts."""
        call(self._offsets, records)

    def acts(self, records: Any) -> str:
        """For each record `c` where its task ends the transaction behind it, `a` where it aborts it, else a dot."""
        text = java_class("java.lang.StringBuilder")()
        call(self._acts, records, text)
        return str(text)

    def commit(self, entries: Any, topic: str, partition: int, first: int, now_ms: int) -> None:
        """Notifies the task that these entries are in the topic, from this offset on."""
        library = jpype()
        target = java_class(f"{COMMON}.TopicPartition")(topic, library.JInt(partition))
        call(self._commit, entries, target, library.JLong(first), library.JLong(now_ms))

    def commit_without_place(self, entries: Any) -> None:
        """Notifies the task of entries that are done with, but are in no topic, or at an unknown place."""
        call(self._drop, entries)

    def take_thrown(self) -> list[Any]:
        """Returns the task's exceptions from notifications of records; it was notified of all others all the same."""
        thrown = list(self._thrown)
        self._thrown.clear()
        return thrown

    def _notify(self) -> Any:
        """(record, metadata) -> void"""
        h, metadata = self._h, java_class(f"{CLIENTS}.RecordMetadata")
        kind, throwable = java_class(f"{CONNECT}.source.SourceTask"), java_class("java.lang.Throwable")
        notify = h.method(kind, "commitRecord", h.void, self._record, metadata).bindTo(self._task)
        keep = h.method(java_class("java.util.List"), "add", h.bool, h.object).bindTo(self._thrown)
        return h.of.catchException(notify, throwable.class_, h.retyped(keep, h.void, throwable))

    def _record_of_entry(self) -> Any:
        entry = java_class("java.util.Map$Entry")
        return self._h.retyped(self._h.method(entry, "getKey", self._h.object), self._record, entry)

    def _committing(self) -> Any:
        """(Iterable, topic and partition, first offset, now) -> void"""
        h, entry = self._h, java_class("java.util.Map$Entry")
        place, metadata = java_class(f"{COMMON}.TopicPartition"), java_class(f"{CLIENTS}.RecordMetadata")
        make = h.constructor(metadata, place, h.long, h.int, h.long, h.int, h.int)
        size = jpype().JInt(UNKNOWN_SIZE)
        make = h.of.insertArguments(make, 4, [size, size])  # (place, first, index, time)
        notify = h.of.collectArguments(self._notify(), 1, make)
        notify = h.of.filterArguments(notify, 0, [self._record_of_entry()])  # (entry, place, first, index, time)
        notify = h.spread(notify, [h.int, entry, place, h.long, h.long], 1, 2, 3, 0, 4)
        following = h.of.insertArguments(
            h.static(java_class("java.lang.Math"), "addExact", h.int, h.int, h.int), 1, [jpype().JInt(1)]
        )
        following = h.of.dropArguments(following, 1, [entry, place, h.long, h.long])
        body = h.of.foldArguments(following, notify)
        body = h.retyped(body, h.int, h.int, h.object, place, h.long, h.long)
        body = h.of.dropArguments(body, 2, [h.iterable])
        return h.of.iteratedLoop(h.none, h.of.constant(h.int, jpype().JInt(0)), body)

    def _dropping(self) -> Any:
        h, metadata = self._h, java_class(f"{CLIENTS}.RecordMetadata")
        nothing = jpype().JArray(jpype().JObject)([None])
        notify = h.of.insertArguments(self._notify(), 1, nothing)
        assert metadata is not None
        return h.for_each(h.of.filterArguments(notify, 0, [self._record_of_entry()]))

    def _asking(self, transactions: Any) -> Any:
        """(Iterable, StringBuilder) -> void"""
        h, record = self._h, self._record
        text = java_class("java.lang.StringBuilder")
        kind = java_class(f"{CONNECT}.runtime.WorkerTransactionContext")
        commits, aborts = (
            h.method(kind, name, h.bool, record).bindTo(transactions) for name in ("shouldCommitOn", "shouldAbortOn")
        )
        commit, abort, neither = (h.constant(h.char, jpype().JChar(char), record) for char in "ca.")
        act = h.of.guardWithTest(aborts, abort, h.of.guardWithTest(commits, commit, neither))
        append = h.retyped(h.method(text, "append", text, h.char), h.void, text, h.char)
        append = h.of.filterArguments(append, 1, [act])
        return h.for_each(h.spread(append, [record, text], 1, 0), text)


def _overrides(task: Any, method: str, *parameters: Any) -> bool:
    """Returns whether a task has such a method that is not SourceTask's own, by its class or one above it."""
    overriding = task.getClass().getMethod(method, list(parameters))
    return str(overriding.getDeclaringClass().getName()) != f"{CONNECT}.source.SourceTask"


def compression(codec: int | None) -> Any:
    """Java's compressor for a codec as record batches number it, with the level that Kafka's producer has for it."""
    kinds = java_class(f"{COMMON}.record.internal.CompressionType")
    kind = kinds.forId(jpype().JInt(codec or 0))
    return java_class(f"{COMMON}.compress.Compression").of(kind).build()


def entry_of(record: Any) -> Any:
    """A list of one entry, for a record by itself."""
    pair = java_class("java.util.AbstractMap$SimpleImmutableEntry")(record, None)
    return java_class("java.util.Collections").singletonList(pair)
