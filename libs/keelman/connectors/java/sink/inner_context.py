"""Connect's own context class around our consumer, for sinks that look inside it.

Iceberg's sink reads the private field `consumer` of `WorkerSinkTaskContext`, to commit offsets by its task's membership
in the group, in transactions of its own. So tasks of sinks whose jars name that class are given an object of it. What
they do to the consumer is done by the thread of the copy run, or steers that like any other context; their membership
is known without asking.
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
        """The context itself."""
        return self._inner

    def steer(self, source: SinkSource) -> Mapping[TopicPartition, int]:
        """Takes from Connect's object what was asked of it, too."""
        offsets = self._inner.offsets()
        if not offsets.isEmpty():
            self.offset(java_class("java.util.HashMap")(offsets))
            self._inner.clearOffsets()
        return super().steer(source)

    @property
    def timeout_ms(self) -> int:
        """As it was said to Connect's object."""
        return int(self._inner.timeout()) if hasattr(self, "_inner") else -1

    @timeout_ms.setter
    def timeout_ms(self, wanted: int) -> None:
        if hasattr(self, "_inner"):
            self._inner.timeout(jpype().JLong(wanted))

    @property
    def commit_requested(self) -> bool:
        """The same."""
        return bool(self._inner.isCommitRequested()) if hasattr(self, "_inner") else False

    @commit_requested.setter
    def commit_requested(self, wanted: bool) -> None:
        if hasattr(self, "_inner"):
            (self._inner.requestCommit if wanted else self._inner.clearCommitRequest)()

    def _connects_own(self, task: SinkTask) -> Any:
        """It asks its `WorkerSinkTask` for its id, its metrics and whether it is paused, so that one has no more."""
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
    """The consumer that a task finds in its context; Java calls it, from any thread of the task's."""

    def __init__(self, context: InnerContext) -> None:
        self._context = context

    def groupMetadata(self) -> Any:
        """Its member's id and generation, as of the last rebalance."""
        assert self._context.consumer is not None
        return self._context.consumer.group_metadata

    def assignment(self) -> Any:
        """The task's partitions."""
        return self._context.assignment()

    def seek(self, place: Any, where: Any) -> None:
        """Reads on from there, once the task's method has returned; nothing while it gives its partitions up."""
        self._context.offset(place, where.offset() if hasattr(where, "offset") else where)

    def pause(self, places: Any) -> None:
        """Gives nothing of these."""
        self._context.pause(*places)

    def resume(self, places: Any) -> None:
        """Gives of these again."""
        self._context.resume(*places)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """What only asks is asked; the rest is refused, for the consumer is not the task's."""
        if name in _ASKED:
            return lambda *given: self._context.ask(lambda: getattr(self._java(), name)(*given))
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
    """An object of a class whose constructor would start a whole worker."""
    field = java_class("sun.misc.Unsafe").class_.getDeclaredField("theUnsafe")
    field.setAccessible(True)
    return field.get(None).allocateInstance(java_class(class_name).class_)
