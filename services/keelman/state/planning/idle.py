"""Since when the nodes' Spark services have had no worker: such a service runs on for a while. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from keelman.model.workload import Goal, spark_name
from keelman.state.planning.sparks import is_used
from keelman.state.snapshot import Snapshot


@dataclass(slots=True)
class IdleSparks:
    """Nodes whose Spark service runs without a worker that needs it, and since when.

    A Spark service takes seconds to start: a cluster that is made anew, or begun again, within `grace_seconds` finds it
    there. The executor of the leader calls `look` after each plan; a new leader counts from the beginning.
    """

    grace_seconds: float = 0.0
    _since: dict[str, float] = field(default_factory=dict)

    def look(self, snapshot: Snapshot, nodes: Iterable[str], now: float) -> None:
        """Notes which of these nodes have an idle Spark service from now on, and which have none any more."""
        for node in nodes:
            spark = snapshot.workloads.get(spark_name(node))
            if spark is None or spark.goal is not Goal.RUNNING or is_used(snapshot.workloads_on(node)):
                self._since.pop(node, None)
            else:
                self._since.setdefault(node, now)

    def lingers(self, node: str, now: float) -> bool:
        """Whether the node's Spark service is to run on although no worker there needs it."""
        since = self._since.get(node, now)
        return now - since < self.grace_seconds

    def over(self, now: float) -> Sequence[str]:
        """The nodes whose Spark service has been idle for long enough: their plan changes now."""
        return [node for node in self._since if not self.lingers(node, now)]
