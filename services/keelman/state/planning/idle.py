"""Remembers since when the nodes' Spark services have had no worker: such a service keeps running for a while. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keelman.model.workload import Goal, spark_name
from keelman.state.planning.sparks import is_used
from keelman.state.resources.snapshot import Snapshot


@dataclass(slots=True)
class IdleSparks:
    """Nodes whose Spark service runs without a worker that needs it, and since when.

    A Spark service takes seconds to start: a cluster that is created again, or started again, within `grace_seconds`
    finds it running. The leader's executor calls `look` after each plan; a new leader counts from the beginning.
    """

    grace_seconds: float = 0.0
    _since: dict[str, float] = field(default_factory=dict)

    def look(self, snapshot: Snapshot, nodes: Iterable[str], now: float) -> None:
        """Notes which of these nodes have an idle Spark service from now on, and which no longer have one."""
        for node in nodes:
            spark = snapshot.workloads.get(spark_name(node))
            if spark is None or spark.goal is not Goal.RUNNING or is_used(snapshot.workloads_on(node)):
                self._since.pop(node, None)
            else:
                self._since.setdefault(node, now)

    def lingers(self, node: str, now: float) -> bool:
        """Returns whether the node's Spark service keeps running although no worker there needs it."""
        since = self._since.get(node, now)
        return now - since < self.grace_seconds

    def over(self, now: float) -> Sequence[str]:
        """Returns the nodes whose Spark service has been idle for long enough: their plan changes now."""
        return [node for node in self._since if not self.lingers(node, now)]
