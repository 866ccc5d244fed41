"""Writes to a Java sink task: puts records in batches, and commits the offsets that the task reports as safe.

The task's lifecycle is Connect's: initialize, start, open, put, preCommit, close, stop, all in one separate thread.
Source: `WorkerSinkTask` of Kafka Connect 4.3.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from keelman.connect import contract
from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import KeptOffset, SinkTask, Writer
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.connect.registry.interface import OpenRegistry
from keelman.connect.tasks.own_metric import OwnMetric
from keelman.connect.tasks.sink_source import SinkSource
from keelman.connectors.java.consumer.client import JavaConsumer
from keelman.connectors.java.consumer.records import JavaRecords
from keelman.connectors.java.errors import RETRIABLE, connect_error
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.sink.context import SinkContext
from keelman.connectors.java.sink.errants import ErrantRecords
from keelman.connectors.java.sink.inner_context import InnerContext
from keelman.connectors.java.sink.one_by_one import SinkOneByOne
from keelman.connectors.java.sink.prepared import PreparedPut
from keelman.connectors.java.sink.records import SinkLoops
from keelman.connectors.java.sink.task_thread import SinkThread, TaskCall
from keelman.connectors.java.steps.record_steps import RecordSteps, record_steps
from keelman.connectors.java.stopping import stop_seconds
from keelman.engine.control import CutShort, GaveUp
from keelman.engine.own_metrics import reported
from keelman.engine.records.conversion import attended
from keelman.engine.records.registries import open_registry
from keelman.engine.sink.consumer.own_consumer import ConsumerOrder
from keelman.kafka.security.oauth import ALLOWED_KEY, JAVA_ALLOWED_KEY
from keelman.runtime.logs.logging import get_logger

T = TypeVar("T")
SHORTEST_WAIT_SECONDS = 0.05
TOPIC_KEYS = ("topics", "topics.regex")

_log = get_logger()


def open_writer(
    loader: PluginLoader, class_name: str, config: Mapping[str, str], task: SinkTask, *, looks_inside: bool = False
) -> JavaWriter:
    """Returns the writer of one Java sink task. `class_name` is the task's class, `config` the connector's keys and the
    task's. With `looks_inside` the task gets Connect's own context. Raises what the task's start raises."""
    topics = {key: config[key] for key in TOPIC_KEYS if key in config}
    metrics = PluginMetrics({"connector": task.connector, "task": str(task.task)})
    return JavaWriter(
        loader,
        class_name,
        record_steps(loader, config, task.worker, _registries(task), metrics),
        config,
        replace(task, config={**task.config, **topics}),
        context=InnerContext if looks_inside else SinkContext,
    )


class JavaWriter(Writer):
    """The writer of one Java task."""

    writes_behind = True
    commits_on_time = True

    def __init__(
        self,
        loader: PluginLoader,
        class_name: str,
        steps: RecordSteps,
        config: Mapping[str, str],
        task: SinkTask,
        *,
        context: type[SinkContext],
    ) -> None:
        """Starts the task. Raises what the task's start raises."""
        assert task.source is not None
        self._task, self._loader, self._steps = task, loader, steps
        self._source: SinkSource = task.source
        self._stop_seconds = stop_seconds(task.worker)
        self._draining_since: float | None = None
        self._open: set[TopicPartition] = set()
        self._safe: dict[TopicPartition, int] = {}
        self._begun: dict[TopicPartition, int] = {}
        self._next: PreparedPut | None = None
        self._last: JavaRecords | None = None
        self._put_under_way: tuple[TaskCall, Callable[[], Any]] | None = None
        self._loops = SinkLoops(steps)
        self._one_by_one = SinkOneByOne(steps, self._source)
        name = f"task-thread-{task.connector}-{task.task}"  # as with Connect
        self._thread = SinkThread(loader, class_name, name=name)
        self._converting = SinkThread(loader, class_name, name=f"{name}-convert")
        self._context = context(task, Policy.of(config, sink=True), self._thread.wake, steps.metrics)
        self._errants = ErrantRecords(self._context, self._source, steps, self._given)
        self._offset = java_class("org.apache.kafka.clients.consumer.OffsetAndMetadata")
        proxy, options = self._context.proxy(), self._context.configs()
        try:
            self._java = self._do("start", lambda: self._begun_task(class_name, proxy, options))
        except BaseException:
            self.close()
            raise

    def _begun_task(self, class_name: str, context: Any, options: Any) -> Any:
        task = self._loader.load(class_name)()
        self._java = task
        task.initialize(context)
        task.start(options)
        return task

    def _given(self) -> Sequence[JavaRecords]:
        batches = (self._last, None if self._next is None else self._next.records)
        return [batch for batch in batches if batch is not None]

    @property
    def full(self) -> bool:
        """Whether the task has requested a commit."""
        return self._context.commit_requested

    @property
    def idle_seconds(self) -> float:
        """The timeout that the task has set in its context; without one the task is called only before a commit."""
        timeout_ms = self._context.timeout_ms
        return timeout_ms / 1000 if timeout_ms > 0 else math.inf

    def open_consumer(self, order: ConsumerOrder) -> JavaConsumer:
        """Returns Kafka's Java consumer. Raises KafkaException."""
        allowed = self._task.worker.get(ALLOWED_KEY, "").strip()
        if allowed:
            java_class("java.lang.System").setProperty(JAVA_ALLOWED_KEY, allowed)
        self._context.consumer = consumer = JavaConsumer(order, self._loops.size)
        return consumer

    def assigned(self, partitions: Mapping[TopicPartition, int | None]) -> None:
        """Closes partitions that are gone, and opens new ones. Raises ConnectError."""
        self._close(self._open - set(partitions))
        opened = sorted(set(partitions) - self._open)
        self._safe = {where: offset for where, offset in self._safe.items() if where in self._open}
        new = {where: offset for where, offset in partitions.items() if offset is not None}
        self._begun = new | {where: offset for where, offset in self._begun.items() if where in self._open}
        self._context.assign(partitions)
        self._open = set(partitions)
        if opened:
            java_partitions = java_class("java.util.ArrayList")(self._context.set_of(opened))
            self._do("open", lambda: self._java.open(java_partitions))
        self._steer()

    def hand_over(self) -> None:
        """Closes all partitions. Raises ConnectError."""
        self._close(self._open)

    def lost(self) -> None:
        """Closes all partitions, as `hand_over` does."""
        self._close(self._open)

    def prepare(self, batch: SinkBatch) -> None:
        """Converts the batch to Java records while the current put runs, and puts them directly after it, unless the
        task has made a request by then. Raises ConnectError, GaveUp."""
        records: Any = batch.values.values
        assert isinstance(records, JavaRecords), "read by the consumer that it has brought"
        converted = self._converted(records)
        put = lambda: self._put_now(converted)  # noqa: E731
        ahead = None
        if self._put_under_way is not None:
            ahead = self._thread.follow(self._put_under_way[0], put, unless=self._context.has_asked)
        self._next = PreparedPut(batch, records, put, ahead)

    def _converted(self, records: JavaRecords) -> Any:
        work = lambda: self._loops.made(records)  # noqa: E731
        try:
            return self._converting.call(
                "convert", work, beat=self._task.beat, attend=self._source.attend, impatient=self._impatient
            )
        except (jpype().JException, ConnectError):
            with self._loader.entered():
                return self._one_by_one.made(records)

    def write(self, batch: SinkBatch) -> None:
        """Begins to put the records, unless their put has begun already. Raises ConnectError, GaveUp."""
        self.settle(last=False)
        if self._next is None or self._next.batch is not batch:
            self.prepare(batch)
        assert self._next is not None
        part, self._next = self._next, None
        self._last = part.records
        self._put_under_way = part.begun(self._thread), part.put

    def settle(self, *, last: bool) -> None:
        """Returns once the records are put. Repeats the put while the task raises retriable errors. Raises
        ConnectError, GaveUp."""
        if self._put_under_way is not None:
            (job, work), self._put_under_way = self._put_under_way, None
            try:
                self._put(work, job, last=last)
            except BaseException:
                self._holds_back()
                raise

    def idle(self) -> None:
        """Puts an empty list, as Connect does, so that the task may do timed work. Raises ConnectError."""
        self._context.answer()
        nothing = java_class("java.util.ArrayList")()
        self._put(lambda: self._put_now(nothing))

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        """Calls the task's preCommit and takes the offsets that it returns. If the call fails, the task gets the
        uncommitted records again, as in Connect. Raises ConnectError for null."""
        self._context.commit_requested = False
        if not offsets or not self._open:
            return
        current = java_class("java.util.HashMap")()
        for where, offset in offsets.items():
            current.put(self._context.place_of(where), self._offset(jpype().JLong(offset.offset)))
        try:
            answer = self._call("preCommit", lambda: self._java.preCommit(current))
        except (jpype().JException, GaveUp) as error:
            reason = "it was interrupted" if isinstance(error, GaveUp) else _text(error)
            _log.warning("java_precommit_failed", class_name=self._thread.class_name, error=reason)
            for where in offsets:
                last = self._safe.get(where, self._begun.get(where))
                if last is not None:
                    self._source.seek(where, last)
        else:
            if answer is None:
                raise ConnectError(f"{self._thread.class_name}.preCommit returned null: it must return a map")
            self._note_safe(answer, offsets)
        self._steer()

    def metrics(self) -> Sequence[OwnMetric]:
        """Returns the metrics of the task and of its steps."""
        with self._loader.entered(), contract.standing(f"{self._thread.class_name}.pluginMetrics"):
            return reported(self._steps.metrics.found())

    def committable(self) -> Mapping[TopicPartition, int]:
        """Returns the offsets that the task reported last."""
        return dict(self._safe)

    def close(self) -> None:
        """Closes the open partitions, and stops the task. Interrupts the task when it does not return in time."""
        try:
            if hasattr(self, "_java"):
                with self._context.closing():
                    open_now = self._context.set_of(self._open)
                    self._end("close", lambda: self._java.close(open_now) if not open_now.isEmpty() else None)
                self._end("stop", self._java.stop)
        finally:
            self._open = set()
            self._put_under_way = None
            self._thread.end()
            self._converting.end()
            self._steps.metrics.close()

    def _steer(self) -> None:
        """Carries out the task's requests to its context. An offset that the task seeks to is also where it gets
        records again from, if it does not commit."""
        for where, offset in self._context.steer(self._source).items():
            self._safe.pop(where, None)
            self._begun[where] = offset

    def _note_safe(self, java_offsets: Any, offsets: Mapping[TopicPartition, KeptOffset]) -> None:
        for entry in java_offsets.entrySet():
            where = TopicPartition(str(entry.getKey().topic()), int(entry.getKey().partition()))
            offset = None if entry.getValue() is None else int(entry.getValue().offset())
            if offset is None or where not in offsets or offset > offsets[where].offset:
                _log.warning("java_offset_ignored", partition=str(where), offset=offset)
            else:
                self._safe[where] = offset

    def _close(self, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        java_set = self._context.set_of(partitions)
        self._open = self._open - set(partitions)
        self._put_under_way = None  # another task has the partitions by now; the next call waits for this put
        with self._context.closing():
            self._do("close", lambda: self._java.close(java_set))
        self._context.assign(self._open)

    def _put_now(self, records: Any) -> None:
        """Puts records, in the task's thread. A timeout that the task sets holds only until its next call."""
        self._context.timeout_ms = -1
        self._java.put(records)

    def _put(self, work: Callable[[], Any], begun: TaskCall | None = None, *, last: bool = False) -> None:
        """Raises ConnectError, GaveUp."""
        while True:
            job, begun = begun or self._thread.begin("put", work), None
            try:
                self._wait(job, None if last else self._attend)
            except jpype().JException as error:
                if not isinstance(error, tuple(java_class(name) for name in RETRIABLE)):
                    raise connect_error(error) from None
                _log.warning("java_put_retried", class_name=self._thread.class_name, error=_text(error))
                self._steer()
                if last:
                    raise GaveUp from None
                self._await_retry()
                continue
            self._steer()
            return

    def _attend(self) -> None:
        """Polls the consumer, which may revoke the next records: so their put is held back first. Raises GaveUp."""
        if self._holds_back():
            self._source.attend()

    def _holds_back(self) -> bool:
        """Keeps the next records from being put directly after the current put. Returns False if that put has begun."""
        return self._next is None or self._next.hold_back(self._thread)

    def _await_retry(self) -> None:
        """Waits for the task's timeout, at most until the next commit; without a timeout until that commit. Raises
        GaveUp where the run must end, or another task has the records."""
        self._source.commit_when_due()
        wait = min(self.idle_seconds, self._source.commit_seconds)
        until = time.monotonic() + max(SHORTEST_WAIT_SECONDS, wait)
        while (left := until - time.monotonic()) > 0:
            if self._source.draining:
                raise GaveUp
            time.sleep(min(left, SHORTEST_WAIT_SECONDS))
            self._task.beat()
            self._source.attend()

    def _do(self, method: str, work: Callable[[], T]) -> T:
        """Calls the task. Raises ConnectError."""
        try:
            return self._call(method, work)
        except jpype().JException as error:
            raise connect_error(error) from None
        except GaveUp:
            raise ConnectError(f"{self._thread.class_name}.{method} was interrupted: its run ends") from None

    def _call(self, method: str, work: Callable[[], T]) -> T:
        """Calls the task. Raises the task's exception, or the exception that ends the run."""
        result: T = self._wait(self._thread.begin(method, work))
        return result

    def _wait(self, job: TaskCall, attend: Callable[[], None] | None = None) -> Any:
        result = self._thread.wait(job, beat=self._beat, attend=attend, impatient=self._impatient)
        self._errants.take()
        return result

    def _end(self, method: str, work: Callable[[], Any]) -> None:
        """Calls the task's close or stop, and logs its failure."""

        def beat() -> None:
            try:
                self._beat()
            except CutShort:
                return  # the run is ending already

        impatient = lambda waited: waited > self._stop_seconds  # noqa: E731
        try:
            self._thread.call(method, work, beat=beat, impatient=impatient)
        except (jpype().JException, ConnectError, GaveUp) as error:
            _log.warning("java_stop_failed", class_name=self._thread.class_name, method=method, error=str(error))

    def _impatient(self, _waited: float) -> bool:
        """Returns whether the run has been draining for so long that the task should have returned."""
        if not self._source.draining:
            return False
        if self._draining_since is None:
            self._draining_since = time.monotonic()
        return time.monotonic() - self._draining_since > self._stop_seconds

    def _beat(self) -> None:
        self._task.beat()
        self._context.answer()
        self._errants.take()


def _registries(task: SinkTask) -> OpenRegistry:
    """Opens schema registries for the converters. If these work in the run's own thread, the run beats meanwhile."""
    own = threading.get_ident()
    return attended(open_registry, lambda: task.beat() if threading.get_ident() == own else None)


def _text(thrown: Any) -> str:
    return str(thrown.toString())
