"""Finds the classes of Kafka Connect's runtime that a connector's code names and keelman's engine does not have.

It reads only the constants of class files: the classes that code uses, and texts that name Connect's classes, for
reflection. A connector reaches the classes that its class names, those that these name, and so on, within its jars.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

RUNTIME = "org/apache/kafka/connect/runtime/"
SINK_CONTEXT, SOURCE_CONTEXT = f"{RUNTIME}WorkerSinkTaskContext", f"{RUNTIME}WorkerSourceTaskContext"
SERVED = frozenset((SINK_CONTEXT, SOURCE_CONTEXT))
"""A task that inspects its context gets one of this very class."""
_NOT_SERVED = frozenset(
    RUNTIME + name
    for name in (
        "AbstractHerder",
        "AbstractWorkerSourceTask",
        "ExactlyOnceWorkerSourceTask",
        "Herder",
        "HerderConnectorContext",
        "Worker",
        "WorkerConnector",
        "WorkerSinkTask",
        "WorkerSourceTask",
        "WorkerTask",
        "distributed/DistributedHerder",
        "distributed/WorkerCoordinator",
        "distributed/WorkerGroupMember",
        "errors/WorkerErrantRecordReporter",
        "health/ConnectClusterStateImpl",
        "standalone/StandaloneHerder",
    )
)
"""Classes that a task or connector could find behind its context with Connect: keelman's engine has none of them."""
_WAY_OUT = "a worker cluster of the engine kafka-connect runs it"
MAX_NAMED = 4_000_000
"""The bound for all classes together: classes beyond it count as naming nothing internal."""


class InnerClasses:
    """The internal classes of Kafka Connect that the classes of one set of jars reach, once `note` has had all of
    these."""

    def __init__(self) -> None:
        self._named: dict[str, Collection[str]] = {}
        self._left = MAX_NAMED

    def note(self, name: str, named: Iterable[str]) -> None:
        """Notes a class and the classes that its constants name, like com/acme/Weather."""
        if name not in self._named and not name.startswith(RUNTIME):
            others = frozenset(named)
            self._left -= len(others)
            if self._left >= 0:
                self._named[name] = others

    def reached(self, name: str) -> Mapping[str, str]:
        """Returns the internal classes that a class reaches, each with the class that names it. Both as
        com/acme/Weather."""
        order, seen, reached_by = [name], {name}, dict[str, str]()
        for class_name in order:
            for other in sorted(self._named.get(class_name, ())):
                if is_inner(other):
                    reached_by.setdefault(other, class_name)
                elif other in self._named and other not in seen:
                    seen.add(other)
                    order.append(other)
        return reached_by


def is_inner(name: str) -> bool:
    """Returns whether a class is internal to Connect, served here or not."""
    return name in SERVED or name in _NOT_SERVED


def refusal(connector: str, reached: Mapping[str, str]) -> str:
    """Returns why a connector cannot run in keelman's engine, for people; empty if it can."""
    missing = [(inner, by) for inner, by in reached.items() if inner not in SERVED]
    if not missing:
        return ""
    inner, by = (name.replace("/", ".") for name in missing[0])
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"{connector} cannot run here: {by} uses {inner}{more}, which is Kafka Connect's own inside; {_WAY_OUT}"
