"""Passes a sink's consumed records to its writer: converted and transformed, with bad records handled by the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from confluent_kafka import Message

from keelman.connect import contract
from keelman.connect.bad_records.dead_letter import RecordOrigin
from keelman.connect.bad_records.tolerance import Policy, RecordFailure
from keelman.connect.failed_record import Stage
from keelman.connect.plugin import SinkTask, Writer
from keelman.connect.tasks.sink_source import SinkSource, WrittenRecord
from keelman.engine.control import Control, GaveUp
from keelman.engine.producing.dead_letters import JoinedDeadLetterWriter, SinkDeadLetterWriter
from keelman.engine.records.bad_records import BadRecords, Counts, Original
from keelman.engine.sink.batch import BatchBuilder, RawColumns, origin
from keelman.engine.sink.consumer.own_consumer import OwnRecords
from keelman.engine.sink.conversion import original, whence_of

PUT = Stage("TASK_PUT", "org.apache.kafka.connect.sink.SinkTask", "put")
T = TypeVar("T")


class SinkPipeline:
    """The pipeline of one run of one sink task; its thread alone uses it."""

    def __init__(
        self,
        connector: str,
        task: int,
        worker: Mapping[str, str],
        config: Mapping[str, str],
        control: Control,
        *,
        converted: bool = False,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        """`converted`: the writer converts and transforms itself. `on_wait` is called each half second
        while a batch waits for a retry; it may raise GaveUp, which ends `put`. Raises ConfigValueError when a
        converter, a transform or a key about errors is not legal."""
        self._connector, self._task, self._worker, self._control = connector, task, worker, control
        policy = Policy.of(config, sink=True)
        self._bad = BadRecords(connector, task, policy, control, on_wait)
        self._columns = RawColumns(self._bad) if converted else BatchBuilder(config, worker, self._bad)
        self._messages: Sequence[Message] = []
        self._putting = False
        self._dead: SinkDeadLetterWriter | JoinedDeadLetterWriter | None = None
        self._config = config

    @property
    def counts(self) -> Counts:
        """Counts of failures in this run."""
        return self._bad.counts

    def give_up(self) -> None:
        """Drops the dead letters of the current batch, if any, since the batch will be read again."""
        if self._putting:
            self._bad.give_up()

    def task(self, config: Mapping[str, str] | None = None, source: SinkSource | None = None) -> SinkTask:
        """Returns the writer's view of the task: `config` is the writer's, `source` the source of its records."""
        about = self._connector, self._task, self._worker
        return SinkTask(*about, self._control.beat, self.report, config or {}, source)

    def open(self, writer: Writer) -> None:
        """Prepares for dead letters. Raises KafkaException, RunFailure, ConnectError or ProduceFailure."""
        if not self._bad.policy.keeps_dead_letters:
            return
        if writer.letter_outlet is not None:
            self._dead = JoinedDeadLetterWriter(self._bad, self._worker, self._config, writer.letter_outlet)
        else:
            client_id = f"connector-dlq-producer-{self._connector}-{self._task}"
            self._dead = SinkDeadLetterWriter(self._bad, self._worker, self._config, self._control, client_id=client_id)
        self._dead.open()

    def put(
        self, messages: list[Message] | OwnRecords, writer: Writer, on_ready: Callable[[], None] = lambda: None
    ) -> tuple[int, int]:
        """Writes a batch, or hands it to a writer that writes behind. Returns the number of good records, and all
        bytes.

        `on_ready` is called before such a writer gets the batch, and settles the previous batch. Raises RecordRefused,
        RunFailure, GaveUp before any of it is written, and what the writer and `on_ready` raise."""
        before, left_out = self._bad.counts.skipped, 0
        self._messages, self._putting = messages, True
        try:
            batch, size = self._columns.batch(messages, writer)
            if writer.writes_behind:
                if batch.values.values:
                    contract.PREPARE.of(writer.prepare, batch)
                aside = self._bad.set_aside()
                on_ready()
                before = self._bad.counts.skipped
                self._bad.bring_back(aside)
            if batch.values.values:
                contract.WRITE.of(writer.write, batch)
                left_out = writer.left_out
            if self._dead is not None:
                self._dead.write()
        except GaveUp:
            self._bad.give_up()
            raise
        finally:
            self._putting = False
        return len(messages) - (self._bad.counts.skipped - before) - left_out, size

    def settle(self, writer: Writer, *, last: bool) -> int:
        """Waits for the last batch of a writer that writes behind. Returns the number of records it could not take.

        Raises GaveUp where none of them is written, and what the writer raises."""
        before, putting = self._bad.counts.skipped, self._putting
        self._putting = True
        try:
            contract.SETTLE.of(writer.settle, last=last)
            if self._dead is not None:
                self._dead.write()
        except GaveUp:
            self._bad.give_up()
            raise
        finally:
            self._putting = putting
        return self._bad.counts.skipped - before

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`, retried by the policy. Raises GaveUp, CutShort, and what `work` raises."""
        return self._bad.retry(work)

    def report(self, index: int, error: Exception, stage: Stage = PUT) -> None:
        """Handles a record that the writer could not take: by its index in the writer's last batch."""
        messages = [self._messages[self._columns.place(index)]]
        came, value, key = origin(messages), [messages[0].value()], [messages[0].key()]
        failure = RecordFailure(stage, error, whence_of(came, 0))
        self._bad.pass_over(failure, lambda: original(value, key, came, 0))

    def report_written(self, record: WrittenRecord, error: Exception) -> None:
        """Handles a record of an earlier batch that the writer could not write."""
        whence = RecordOrigin(record.place.topic, record.place.partition, record.offset)
        original_record = Original(record.key, record.value, record.headers, record.timestamp_ms)
        self._bad.pass_over(RecordFailure(PUT, error, whence), lambda: original_record)

    def flush(self) -> None:
        """Returns once all dead letters are in their topic; called before the commit of their batch."""
        if self._dead is not None:
            self._dead.write()
            self._dead.flush()

    def close(self) -> None:
        """Closes the writer of dead letters."""
        if self._dead is not None:
            self._dead.close()
