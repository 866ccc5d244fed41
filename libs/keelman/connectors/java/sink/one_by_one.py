"""Makes Java's `SinkRecord`s one by one, each step by itself: where some record of a batch is a bad one, so that it is
found with the step that could not take it."""

from __future__ import annotations

from typing import Any

from keelman.connect.tasks.sink_source import SinkSource
from keelman.connectors.java.consumer.records import JavaRecords
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.steps.record_steps import RecordSteps
from keelman.connectors.java.steps.step_attempts import StepAttempts, StepFailed

CONNECT = "org.apache.kafka.connect"


class SinkOneByOne:
    """Converts one task's records one by one; used by the thread of its copy run."""

    def __init__(self, steps: RecordSteps, source: SinkSource) -> None:
        self._steps, self._source, self._attempts = steps, source, StepAttempts(source)
        self._stages = {role: steps.stage(role) for role in ("key", "value", "header")}
        self._record = java_class(f"{CONNECT}.sink.SinkRecord")
        self._checked = java_class(f"{CONNECT}.util.ConnectUtils").checkAndConvertTimestamp

    def made(self, records: JavaRecords) -> Any:
        """A Java list of those that go to the task. Raises what ends the run."""
        java_records = java_class("java.util.ArrayList")()
        for n, record in enumerate(records.each()):
            try:
                java_record = self._made(record)
            except StepFailed as failure:
                self._source.report(n, failure.error, failure.stage)
                continue
            if java_record is not None:
                java_records.add(java_record)
        return java_records

    def _made(self, record: Any) -> Any:
        topic, raw, steps, stages = record.topic(), record.headers(), self._steps, self._stages
        key = self._attempts.of(stages["key"], lambda: steps.key.toConnectData(topic, raw, record.key()))
        value = self._attempts.of(stages["value"], lambda: steps.value.toConnectData(topic, raw, record.value()))
        headers = self._attempts.of(stages["header"], lambda: steps.read_headers(topic, raw))
        java_record = self._record(
            topic,
            jpype().JInt(record.partition()),
            *(key.schema(), key.value(), value.schema(), value.value()),
            jpype().JLong(record.offset()),
            self._checked(java_class("java.lang.Long")(jpype().JLong(record.timestamp()))),
            record.timestampType(),
            headers,
        )
        return self._attempts.transformed(java_record, steps.transforms)
