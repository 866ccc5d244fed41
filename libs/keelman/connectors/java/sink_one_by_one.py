"""Makes Java's `SinkRecord`s one by one, each step by itself: where some record of a batch is a bad one, so that it is
found with the step that could not take it."""

from __future__ import annotations

from typing import Any

from keelman.connect.sink_source import SinkSource
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.record_steps import RecordSteps
from keelman.connectors.java.sink_records import Fetched
from keelman.connectors.java.step_attempts import StepAttempts, StepFailed

CONNECT, COMMON = "org.apache.kafka.connect", "org.apache.kafka.common"


class SinkOneByOne:
    """Of one task; used by the thread of its copy run."""

    def __init__(self, steps: RecordSteps, source: SinkSource) -> None:
        self._steps, self._source, self._attempts = steps, source, StepAttempts(source)
        self._stages = {role: steps.stage(role) for role in ("key", "value", "header")}
        self._record = java_class(f"{CONNECT}.sink.SinkRecord")
        self._raw = java_class(f"{COMMON}.header.internals.RecordHeaders")
        self._headers = java_class(f"{CONNECT}.header.ConnectHeaders")
        self._types = java_class(f"{COMMON}.record.TimestampType")

    def made(self, records: Fetched) -> Any:
        """A Java list of those that go to the task. Raises what ends the run."""
        found = java_class("java.util.ArrayList")()
        for n in range(len(records)):
            try:
                one = self._made(records, n)
            except StepFailed as failure:
                self._source.report(n, failure.error, failure.stage)
                continue
            if one is not None:
                found.add(one)
        return found

    def _made(self, records: Fetched, n: int) -> Any:
        came = records.origin
        topic = java_class("java.lang.String")(came.topics[n])
        raw = self._raw()
        for name, value in came.headers[n] or ():
            raw.add(name, _bytes(value))
        steps, stages = self._steps, self._stages
        key = self._attempts.of(stages["key"], lambda: steps.key.toConnectData(topic, raw, _bytes(records.keys[n])))
        value = self._attempts.of(
            stages["value"], lambda: steps.value.toConnectData(topic, raw, _bytes(records.values[n]))
        )
        headers = self._attempts.of(stages["header"], lambda: self._converted(topic, raw))
        time = came.timestamps_ms[n]
        one = self._record(
            topic,
            jpype().JInt(came.partitions[n]),
            *(key.schema(), key.value(), value.schema(), value.value()),
            jpype().JLong(came.offsets[n]),
            None if time is None else java_class("java.lang.Long")(jpype().JLong(time)),
            self._types.NO_TIMESTAMP_TYPE if time is None else self._types.CREATE_TIME,
            headers,
        )
        return self._attempts.transformed(one, steps.transforms)

    def _converted(self, topic: Any, raw: Any) -> Any:
        made = self._headers()
        for one in raw:
            made.add(one.key(), self._steps.headers.toConnectHeader(topic, one.key(), one.value()))
        return made


def _bytes(value: bytes | None) -> Any:
    return None if value is None else jpype().JArray(jpype().JByte)(value)
