"""Single records through the steps of a Java connector, each step's record seen: for previews and replays.

Java's own objects process Java's own records; the view of a record crosses the border field by field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from keelman.connect.errors import ConnectError, DataError
from keelman.connect.failed_record import CONVERTER_STAGES, TRANSFORMATION, StageName
from keelman.connect.previews.record_trace import OnStep, PreviewedRecord, StepFailure, StepResult, pass_over
from keelman.connect.record import Header, Record
from keelman.connect.records import Headers
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.schema import Schema
from keelman.connectors.java.border.python_data import FromJava, ToJava
from keelman.connectors.java.errors import connect_error
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.steps.record_steps import record_steps
from keelman.connectors.java.steps.transforms import JavaStep

CONNECT, COMMON = "org.apache.kafka.connect", "org.apache.kafka.common"
T = TypeVar("T")


@dataclass(slots=True)
class JavaRecord(Record):
    """Our view of a record, with the Java record that it shows."""

    java: Any = None


class RecordViews:
    """Shows records of Java's. Used by one thread."""

    def __init__(self) -> None:
        self._from = FromJava()

    def of(self, java: Any) -> JavaRecord:
        """Converts a SourceRecord or SinkRecord to ours; a value without a counterpart becomes a text that tells it."""
        partition, time = java.kafkaPartition(), java.timestamp()
        offset = int(java.kafkaOffset()) if isinstance(java, java_class(f"{CONNECT}.sink.SinkRecord")) else None
        return JavaRecord(
            "" if java.topic() is None else str(java.topic()),
            None if partition is None else int(partition),
            *self._taken(java.keySchema(), java.key()),
            *self._taken(java.valueSchema(), java.value()),
            None if time is None else int(time),
            [Header(str(header.key()), *self._taken(header.schema(), header.value())) for header in java.headers()],
            offset,
            java,
        )

    def _taken(self, schema: Any, value: Any) -> tuple[Schema | None, Any]:
        try:
            return self._from.taken(schema, value)
        except DataError as error:
            return None, f"not shown: {error}"


class JavaSteps:
    """The converters and transforms of one Java connector; as `record_trace.Steps`."""

    def __init__(
        self, loader: PluginLoader, config: Mapping[str, str], worker: Mapping[str, str], open_registry: OpenRegistry
    ) -> None:
        """Raises ConfigValueError, ConnectError."""
        self._loader = loader
        self._steps = record_steps(loader, config, worker, open_registry)
        self._views, self._to = RecordViews(), ToJava()
        self._source_record = java_class(f"{CONNECT}.source.SourceRecord")
        self._sink_record = java_class(f"{CONNECT}.sink.SinkRecord")
        self._raw = java_class(f"{COMMON}.header.internals.RecordHeaders")
        self._types = java_class(f"{COMMON}.record.TimestampType")

    def decode(self, record: Record, key: bytes | None, value: bytes | None, headers: Headers) -> Record:
        """A record of a topic as Java's converters read it. Raises StepFailure."""
        topic, raw = java_class("java.lang.String")(record.topic), self._raw_of(headers)
        steps = self._steps
        keyed = self._converted("key", lambda: steps.key.toConnectData(topic, raw, _array(key)))
        valued = self._converted("value", lambda: steps.value.toConnectData(topic, raw, _array(value)))
        java_headers = self._converted("header", lambda: self._steps.read_headers(topic, raw))
        java = self._sink_record(
            topic,
            jpype().JInt(record.partition or 0),
            *(keyed.schema(), keyed.value(), valued.schema(), valued.value()),
            jpype().JLong(record.offset or 0),
            _time(record),
            self._types.NO_TIMESTAMP_TYPE if record.timestamp_ms is None else self._types.CREATE_TIME,
            java_headers,
        )
        return self._views.of(java)

    def headers(self, headers: Headers) -> list[Header]:
        """Without a step of Java's: records come with theirs."""
        return [Header(name, None, raw, raw) for name, raw in headers]

    def given(self, record: Record, headers: Headers) -> Record:
        """Converts a source's record to Java's, with headers read by Java's converter. Raises StepFailure, and
        DataError for data without a counterpart in Java."""
        topic, raw = java_class("java.lang.String")(record.topic), self._raw_of(headers)
        java_headers = self._converted("header", lambda: self._steps.read_headers(topic, raw))
        nothing = java_class("java.util.Collections").emptyMap()
        partition = (
            None if record.partition is None else java_class("java.lang.Integer")(jpype().JInt(record.partition))
        )
        keyed, valued = (
            self._to.given(schema, data)
            for schema, data in ((record.key_schema, record.key), (record.value_schema, record.value))
        )
        java = self._source_record(nothing, nothing, topic, partition, *keyed, *valued, _time(record), java_headers)
        return self._views.of(java)

    def through(self, record: Record, on_step: OnStep = pass_over) -> Record | None:
        """The record behind all transforms; None when one dropped it. Raises StepFailure."""
        java_record: Any = _java_of(record)
        for step in self._steps.transforms:
            if java_record is None:
                return None
            java_record = self._pass(step, java_record, on_step)
        return None if java_record is None else self._views.of(java_record)

    def written(self, record: Record, *, raw: bool) -> PreviewedRecord:
        """A source's record as Java's converters write it. Raises StepFailure."""
        java, steps = _java_of(record), self._steps
        headers = self._converted("header", lambda: steps.written_headers(java))
        key = self._converted(
            "key", lambda: _bytes(steps.key.fromConnectData(java.topic(), headers, java.keySchema(), java.key()))
        )
        value = self._converted(
            "value",
            lambda: _bytes(steps.value.fromConnectData(java.topic(), headers, java.valueSchema(), java.value())),
        )
        named = [(str(header.key()), _bytes(header.value())) for header in headers]
        return PreviewedRecord(record.topic, record.partition, record.timestamp_ms, key, value, named)

    def _pass(self, step: JavaStep, java: Any, on_step: OnStep) -> Any:
        changed = java
        with self._at(TRANSFORMATION, f"transforms.{step.alias}"):
            holds = None if step.predicate is None else bool(step.predicate.test(java))
            applied = holds is None or holds != step.negate
            if applied:
                changed = step.transform.apply(java)
        shown = None if changed is None else self._views.of(changed)
        on_step(StepResult(step.alias, step.negate, applied, holds, shown))
        return changed

    def _raw_of(self, headers: Headers) -> Any:
        raw_headers = self._raw()
        for name, raw in headers:
            raw_headers.add(name, _array(raw))
        return raw_headers

    def _converted(self, role: str, work: Callable[[], T]) -> T:
        with self._at(CONVERTER_STAGES[role], f"{role}.converter"):
            return work()

    @contextmanager
    def _at(self, stage: StageName, step: str) -> Iterator[None]:
        try:
            with self._loader.entered():
                yield
        except jpype().JException as error:
            raise StepFailure(stage, step, connect_error(error)) from None
        except ConnectError as error:  # of a converter of ours
            raise StepFailure(stage, step, error) from error


def _java_of(record: Record) -> Any:
    assert isinstance(record, JavaRecord)
    return record.java


def _time(record: Record) -> Any:
    time = record.timestamp_ms
    return None if time is None else java_class("java.lang.Long")(jpype().JLong(time))


def _array(value: bytes | None) -> Any:
    return None if value is None else jpype().JArray(jpype().JByte)(value)


def _bytes(array: Any) -> bytes | None:
    return None if array is None else bytes(memoryview(array))
