"""Converts a source's records one by one, each step by itself: where some record of a poll is a bad one, so that it is
found with the step that could not take it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from keelman.connect.failed_record import FailedRecord, Format
from keelman.connect.records import Column, Headers, Offset, Partition, SourceBatch
from keelman.connect.tasks.source_task import SourceTarget
from keelman.connectors.java.configs import json_converter
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.steps.record_steps import RecordSteps
from keelman.connectors.java.steps.step_attempts import StepAttempts, StepFailed


class RecordNotes(Protocol):
    """Keeps notes of records until they are committed."""

    def note_lost(self, record: Any) -> None:
        """It goes nowhere."""

    def note_sent(self, record: Any) -> Callable[[int, int], None] | None:
        """It goes to a topic; what to call with its partition and offset there, None for nothing."""


@dataclass(slots=True)
class _Rows:
    """The records for one topic, in order."""

    values: list[bytes | None] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)
    failed: dict[int, FailedRecord] = field(default_factory=dict)
    delivered: dict[int, Callable[[int, int], None]] = field(default_factory=dict)

    def batch(self, topic: str, position: Callable[[Any], tuple[Partition, Offset | None]]) -> SourceBatch:
        """These records."""
        return SourceBatch(
            topic,
            Column(self.values),
            Column(self.keys),
            self.partitions if any(partition is not None for partition in self.partitions) else None,
            self.times if any(time is not None for time in self.times) else None,
            self.headers if any(self.headers) else None,
            raw=True,
            failed=self.failed,
            delivered=self.delivered or None,
            position=lambda index: position(self.records[index]),
        )


class OneByOne:
    """Converts one task's records one by one; used by the thread of its copy run."""

    def __init__(self, steps: RecordSteps, target: SourceTarget) -> None:
        self._steps, self._attempts = steps, StepAttempts(target)
        self._envelope, self._plain = (json_converter(schemas=schemas) for schemas in (True, False))
        self._stages = {role: steps.stage(role) for role in ("key", "value", "header")}
        self._checked = java_class("org.apache.kafka.connect.util.ConnectUtils").checkAndConvertTimestamp

    def batches(self, records: Any, notes: RecordNotes) -> Iterator[SourceBatch]:
        """A batch for each topic, those that cannot be converted among the others. Raises what ends the run."""
        topics: dict[str, _Rows] = {}
        for record in records:
            try:
                self._take(record, topics, notes)
            except StepFailed as failure:
                notes.note_lost(record)
                self._take_failed(record, topics.setdefault(str(record.topic()), _Rows()), failure)
        for topic, rows in topics.items():
            yield rows.batch(topic, self._position)

    def _take(self, record: Any, topics: dict[str, _Rows], notes: RecordNotes) -> None:
        changed = self._attempts.transformed(record, self._steps.transforms)
        if changed is None:
            notes.note_lost(record)
            return
        headers = self._attempts.of(self._stages["header"], lambda: self._steps.written_headers(changed))
        key = self._attempts.of(self._stages["key"], lambda: self._payload(self._steps.key, changed, headers, "key"))
        value = self._attempts.of(
            self._stages["value"], lambda: self._payload(self._steps.value, changed, headers, "value")
        )
        rows = topics.setdefault(str(changed.topic()), _Rows())
        partition, time = changed.kafkaPartition(), self._checked(changed.timestamp())
        notify = notes.note_sent(record)
        if notify is not None:
            rows.delivered[len(rows.values)] = notify
        rows.values.append(value)
        rows.keys.append(key)
        rows.partitions.append(None if partition is None else int(partition))
        rows.times.append(None if time is None else int(time))
        rows.headers.append(_raw_headers(headers))
        rows.records.append(record)

    def _take_failed(self, record: Any, rows: _Rows, failure: StepFailed) -> None:
        """The record as it was read, for a dead letter."""
        key, key_format = self._shown(record, record.keySchema(), record.key())
        value, value_format = self._shown(record, record.valueSchema(), record.value())
        partition, time = record.kafkaPartition(), record.timestamp()
        try:
            headers = _raw_headers(self._steps.written_headers(record))
        except jpype().JException:  # they may be the very reason why it is a dead letter
            headers = ()
        rows.failed[len(rows.values)] = FailedRecord(failure.stage, failure.error, key_format, value_format)
        rows.values.append(value)
        rows.keys.append(key)
        rows.partitions.append(None if partition is None else int(partition))
        rows.times.append(None if time is None else int(time))
        rows.headers.append(headers)
        rows.records.append(record)

    def _payload(self, converter: Any, record: Any, headers: Any, role: str) -> bytes | None:
        schema, value = (record.keySchema(), record.key()) if role == "key" else (record.valueSchema(), record.value())
        return _bytes(converter.fromConnectData(record.topic(), headers, schema, value))

    def _shown(self, record: Any, schema: Any, value: Any) -> tuple[bytes | None, Format]:
        if value is None and schema is None:
            return None, "bytes"
        try:
            return _bytes(self._envelope.fromConnectData(record.topic(), schema, value)), "json"
        except jpype().JException:
            return str(java_class("java.lang.String").valueOf(value)).encode("utf-8", "replace"), "text"

    def _position(self, record: Any) -> tuple[Partition, Offset | None]:
        partition, offset = (
            json.loads(_bytes(self._plain.fromConnectData("", None, part)) or b"null")
            for part in (record.sourcePartition(), record.sourceOffset())
        )
        return partition or {}, offset


def _raw_headers(headers: Any) -> Headers:
    return [(str(header.key()), _bytes(header.value())) for header in headers]


def _bytes(array: Any) -> bytes | None:
    return None if array is None else bytes(memoryview(array))
