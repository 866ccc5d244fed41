"""Takes the records that a Java sink task reports because it cannot write them: they are dead letters, or fail it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keelman.connect.records import TopicPartition
from keelman.connect.tasks.sink_source import SinkSource, WrittenRecord
from keelman.connectors.java.consumer.records import JavaRecords, raw
from keelman.connectors.java.jvm import java_class
from keelman.connectors.java.sink.context import Errant, SinkContext
from keelman.connectors.java.steps.record_steps import RecordSteps

EXCEEDED = "Tolerance exceeded in error handler"


class ErrantRecords:
    """The errant records of one task; used by the thread of its copy run."""

    def __init__(
        self, context: SinkContext, source: SinkSource, steps: RecordSteps, batches: Callable[[], Sequence[JavaRecords]]
    ) -> None:
        """`batches` returns the records that the task has at the moment, as they were read."""
        self._context, self._source, self._steps, self._given = context, source, steps, batches

    def take(self) -> None:
        """Handles the records reported since the last call. Raises the error that fails the task."""
        for errant in self._context.take_errants():
            try:
                self._take(errant)
            except BaseException:
                kind = java_class("org.apache.kafka.connect.errors.ConnectException")
                errant.future.completeExceptionally(kind(EXCEEDED))
                raise
            errant.future.complete(None)

    def _take(self, errant: Errant) -> None:
        record = errant.record
        where = TopicPartition(str(record.originalTopic()), int(record.originalKafkaPartition()))
        offset = int(record.originalKafkaOffset())
        written = next((match for batch in self._given() if (match := batch.find(where, offset))), None)
        if written is not None:
            self._source.report_written(written, errant.error)
            return
        topic, headers = record.topic(), []
        for header in record.headers():
            converted = self._steps.headers.fromConnectHeader(topic, header.key(), header.schema(), header.value())
            headers.append((str(header.key()), raw(converted)))
        key = raw(self._steps.key.fromConnectData(topic, record.keySchema(), record.key()))
        value = raw(self._steps.value.fromConnectData(topic, record.valueSchema(), record.value()))
        time_ms = None if record.timestamp() is None else int(record.timestamp())
        self._source.report_written(WrittenRecord(where, offset, key, value, headers, time_ms), errant.error)
