"""Connect's own context class around our consumer, for sinks that use its internals.

Iceberg's sink reads the private field `consumer` of `WorkerSinkTaskContext`, to commit offsets by its task's membership
in the group, in its own transactions. So tasks of sinks whose jars name that class get an object of it. The thread of
the copy run carries out their calls to the consumer, or is steered by them as by any other context; the membership is
known without a call.
Source: `WorkerSinkTaskContext`, `WorkerSinkTask` and `WorkerTask` of Kafka Connect 4.3; `KafkaUtils` of
iceberg-kafka-connect 1.11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.plugin import SinkTask
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.sink_source import SinkSource
from keelman.connectors.java.configs import task_state
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.plugin_metrics import PluginMetrics
from keelman.connectors.java.sink.context import CONNECT, SinkContext

CONSUMER = "org.apache.kafka.clients.consumer.Consumer"
_ASKED = frozenset(
    ("committed", "position", "beginningOffsets", "endOffsets", "offsetsForTimes", "partitionsFor", "listTopics")
)
_SERVED = "groupMetadata, assignment, seek, pause, resume, " + ", ".join(sorted(_ASKED))


class InnerContext(SinkContext):
    """The inner context of one task. Records that it cannot write fail it: it has no reporter of errant records."""

    def __init__(self, task: SinkTask, policy: Policy, wake: Callable[[], None], metrics: PluginMetrics) -> None:
        super().__init__(task, policy, wake, metrics)
        self._inner = self._connects_own(task)

    def proxy(self) -> Any:
        """Returns Connect's context object."""
        return self._inner

    def steer(self, source: SinkSource) -> Mapping[TopicPartition, int]:
        """Takes over the seeks made on Connect's object, too."""
        offsets = self._inner.offsets()
        if not offsets.isEmpty():
            self.offset(java_class("java.util.HashMap")(offsets))
            self._inner.clearOffsets()
        return super().steer(source)

    @property
    def timeout_ms(self) -> int:
        """The timeout that was set on Connect's object."""
        return int(self._inner.timeout()) if hasattr(self, "_inner") else -1

    @timeout_ms.setter
    def timeout_ms(self, milliseconds: int) -> None:
        if hasattr(self, "_inner"):
            self._inner.timeout(jpype().JLong(milliseconds))

    @property
    def commit_requested(self) -> bool:
        """Whether a commit was requested on Connect's object."""
        return bool(self._inner.isCommitRequested()) if hasattr(self, "_inner") else False

    @commit_requested.setter
    def commit_requested(self, requested: bool) -> None:
        if hasattr(self, "_inner"):
            (self._inner.requestCommit if requested else self._inner.clearCommitRequest)()

    def _connects_own(self, task: SinkTask) -> Any:
        """Returns Connect's object. It reads only id, metrics and target state of its `WorkerSinkTask`, so only these
        are set."""
        whose, state = task_state(task.connector, task.task, self.configs())
        worker = _without_constructor(f"{CONNECT}.runtime.WorkerSinkTask")
        parent = java_class(f"{CONNECT}.runtime.WorkerTask").class_
        for name, value in (
            ("id", whose),
            ("pluginMetrics", self.pluginMetrics()),
            ("targetState", java_class(f"{CONNECT}.runtime.TargetState").STARTED),
        ):
            field = parent.getDeclaredField(name)
            field.setAccessible(True)
            field.set(worker, value)
        consumer = jpype().JProxy(CONSUMER, inst=_ContextConsumer(self))
        return java_class(f"{CONNECT}.runtime.WorkerSinkTaskContext")(consumer, worker, state)


class _ContextConsumer:
    """The consumer that a task finds in its context; Java calls it, from any of the task's threads."""

    def __init__(self, context: InnerContext) -> None:
        self._context = context

    def groupMetadata(self) -> Any:
        """Returns the member's id and generation, as of the last rebalance."""
        assert self._context.consumer is not None
        return self._context.consumer.group_metadata

    def assignment(self) -> Any:
        """Returns the task's partitions."""
        return self._context.assignment()

    def seek(self, place: Any, where: Any) -> None:
        """Seeks once the task's method has returned; does nothing while the task gives its partitions up."""
        self._context.offset(place, where.offset() if hasattr(where, "offset") else where)

    def pause(self, places: Any) -> None:
        """Pauses these partitions."""
        self._context.pause(*places)

    def resume(self, places: Any) -> None:
        """Resumes these partitions."""
        self._context.resume(*places)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Forwards read-only methods; refuses all others, because the consumer belongs to the copy run."""
        if name in _ASKED:
            return lambda *arguments: self._context.ask(lambda: getattr(self._java(), name)(*arguments))
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_given: self._refuse(name)

    def _java(self) -> Any:
        assert self._context.consumer is not None, "asked before it is there"
        return self._context.consumer.java

    def _refuse(self, name: str) -> None:
        kind = java_class("java.lang.UnsupportedOperationException")
        raise kind(f"Consumer.{name} is not the task's to call here; it may call {_SERVED}")


def _without_constructor(class_name: str) -> Any:
    """Returns an object without a call of its constructor, which would start a whole worker."""
    field = java_class("sun.misc.Unsafe").class_.getDeclaredField("theUnsafe")
    field.setAccessible(True)
    return field.get(None).allocateInstance(java_class(class_name).class_)
