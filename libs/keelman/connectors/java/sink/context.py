"""The worker as a Java sink task sees it: the SinkTaskContext of Connect, and its reporter of errant records.

The task calls it from any of its threads; the calls are queued, and the thread of the copy run carries them out.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import SinkTask
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.sink_source import SinkSource
from keelman.connectors.java.configs import string_map
from keelman.connectors.java.consumer.client import JavaConsumer
from keelman.connectors.java.errors import connect_error
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.runtime.logs.logging import get_logger

COMMON, CONNECT = "org.apache.kafka.common", "org.apache.kafka.connect"
ANSWER_SECONDS = 60.0
T = TypeVar("T")

_log = get_logger()


@dataclass(frozen=True, slots=True)
class Errant:
    """A record that the task could not write, and the future that the task waits for."""

    record: Any
    error: ConnectError
    future: Any


class SinkContext:
    """The context of one task. Java calls the methods with Java's names."""

    def __init__(self, task: SinkTask, policy: Policy, wake: Callable[[], None], metrics: PluginMetrics) -> None:
        """`wake` is called when there is something for the copy run's thread to do."""
        self._lock, self._owner = threading.Lock(), threading.get_ident()
        self._wake = wake
        self._config = string_map(task.config)
        self._assigned = java_class("java.util.HashSet")()
        self._place = java_class(f"{COMMON}.TopicPartition")
        self._seeks: dict[TopicPartition, int] = {}
        self._pauses: list[tuple[bool, set[TopicPartition]]] = []
        self._errants: list[Errant] = []
        self._tolerant = policy.tolerant
        self._reports = bool(policy.dead_letters) or policy.log
        self._asked: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._seeks_count = True
        self.consumer: JavaConsumer | None = None
        """The consumer that reads the records; for the copy run's thread."""
        self.commit_requested = False
        self.timeout_ms = -1
        """The longest wait before the task's next call; not above 0 if the task has set none."""
        self._metrics = metrics

    # For the copy run's thread.

    def proxy(self) -> Any:
        """Returns the context as a Java object."""
        return jpype().JProxy(f"{CONNECT}.sink.SinkTaskContext", inst=self)

    def assign(self, partitions: Collection[TopicPartition]) -> Any:
        """Sets the task's partitions, and returns them as a Java set."""
        java_set = self.set_of(partitions)
        self._assigned = java_set
        return java_set

    def set_of(self, partitions: Collection[TopicPartition]) -> Any:
        """Returns partitions as a Java set."""
        java_set = java_class("java.util.HashSet")()
        for partition in partitions:
            java_set.add(self.place_of(partition))
        return java_set

    def place_of(self, partition: TopicPartition) -> Any:
        """Returns Java's object for a partition."""
        return self._place(partition.topic, jpype().JInt(partition.partition))

    def has_asked(self) -> bool:
        """Returns whether the task has made a request that affects its next records. From any thread."""
        with self._lock:
            return bool(self._seeks or self._pauses or self._errants)

    def steer(self, source: SinkSource) -> Mapping[TopicPartition, int]:
        """Carries out the seeks, pauses and resumes since the last call. Returns the seeks."""
        with self._lock:
            seeks, self._seeks = self._seeks, {}
            pauses, self._pauses = self._pauses, []
        for partition, offset in seeks.items():
            source.seek(partition, offset)
        for paused, partitions in pauses:
            (source.pause if paused else source.resume)(partitions)
        return seeks

    def take_errants(self) -> list[Errant]:
        """Returns the records that were reported since the last call."""
        with self._lock:
            taken, self._errants = self._errants, []
        return taken

    def answer(self) -> None:
        """Carries out the calls to the consumer since the last time."""
        while self._asked:
            work, future = self._asked.popleft()
            try:
                future.set_result(work())
            except Exception as error:  # the task gets it
                future.set_exception(error)

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Ignores seeks while the task gives partitions up: they must not affect the partitions' next task."""
        self._seeks_count = False
        try:
            yield
        finally:
            self._seeks_count = True

    # For Java.

    def configs(self) -> Any:
        """Returns the task's configuration."""
        return self._config

    def offset(self, *arguments: Any) -> None:
        """Seeks to offsets: a map of them, or a partition and its offset."""
        pairs = (
            [(entry.getKey(), entry.getValue()) for entry in arguments[0].entrySet()]
            if len(arguments) == 1
            else [arguments]
        )
        if not self._seeks_count:
            return
        with self._lock:
            for place, offset in pairs:
                if offset is not None:
                    self._seeks[_partition(place)] = _number(offset)

    def ask(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`, run by the copy run's thread, which owns the consumer. Raises what it raises,
        and TimeoutError."""
        if threading.get_ident() == self._owner:
            return work()
        future: Future[T] = Future()
        self._asked.append((work, future))
        self._wake()
        return future.result(ANSWER_SECONDS)

    def timeout(self, timeout_ms: Any) -> None:
        """Sets the longest wait before the task's next call."""
        self.timeout_ms = int(timeout_ms)

    def assignment(self) -> Any:
        """Returns the task's partitions."""
        return self._assigned

    def pause(self, *partitions: Any) -> None:
        """Pauses these partitions."""
        self._steer(paused=True, partitions=partitions)

    def resume(self, *partitions: Any) -> None:
        """Resumes these partitions."""
        self._steer(paused=False, partitions=partitions)

    def requestCommit(self) -> None:
        """Requests a commit soon."""
        self.commit_requested = True

    def errantRecordReporter(self) -> Any:
        """Returns the reporter for records that the task cannot write; null if reports would have no effect."""
        if not self._reports:
            return None
        return jpype().JProxy(f"{CONNECT}.sink.ErrantRecordReporter", dict={"report": self._report})

    def pluginMetrics(self) -> Any:
        """Returns the task's plugin metrics."""
        return self._metrics.java

    def _steer(self, *, paused: bool, partitions: Collection[Any]) -> None:
        """Queues a pause or resume. Raises Java's IllegalWorkerStateException for a partition that is not the task's,
        as a consumer does."""
        places = [place for some in partitions for place in (some if _is_array(some) else [some])]
        for place in places:
            if not self._assigned.contains(place):
                kind = java_class(f"{CONNECT}.errors.IllegalWorkerStateException")
                raise kind(f"SinkTasks may not pause or resume a partition that is not assigned to them: {place}")
        with self._lock:
            self._pauses.append((paused, {_partition(place) for place in places}))

    def _report(self, record: Any, thrown: Any) -> Any:
        error = connect_error(thrown)
        if not self._tolerant:
            where = f"{record.originalTopic()}-{record.originalKafkaPartition()}"
            offset, said = int(record.originalKafkaOffset()), str(error)
            note = "errors.tolerance is none: the task gets this error and decides about the record itself"
            _log.warning("java_record_not_tolerated", partition=where, offset=offset, error=said, note=note)
            kind = java_class(f"{CONNECT}.errors.ConnectException")
            raise kind("Tolerance exceeded in error handler", thrown)
        future = java_class("java.util.concurrent.CompletableFuture")()
        with self._lock:
            self._errants.append(Errant(record, error, future))
        self._wake()
        return future


def _partition(place: Any) -> TopicPartition:
    return TopicPartition(str(place.topic()), int(place.partition()))


def _number(offset: Any) -> int:
    return int(offset.longValue()) if hasattr(offset, "longValue") else int(offset)


def _is_array(value: Any) -> bool:
    return isinstance(value, jpype().JArray | list | tuple)
