"""Remembers since when Spark services have had no worker: such a service keeps running for a while. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from keelman.model.workload import Goal
from keelman.state.planning.sparks import is_used, sparks_of
from keelman.state.resources.snapshot import Snapshot


@dataclass(slots=True)
class IdleSparks:
    """Spark services that run without a worker that needs them: node and time since when, by name.

    A Spark service takes seconds to start: a cluster that is created again, or started again, within `grace_seconds`
    finds it running. The leader's executor calls `look` after each plan; a new leader counts from the beginning.
    """

    grace_seconds: float = 0.0
    _since: dict[str, tuple[str, float]] = field(default_factory=dict)

    def look(self, snapshot: Snapshot, nodes: Collection[str], now: float) -> None:
        """Notes which Spark services of these nodes are idle from now on, and which no longer are."""
        idle = {name: found for name, found in self._since.items() if found[0] not in nodes}
        for node in nodes:
            for spark in sparks_of(snapshot.workloads_on(node)):
                if spark.goal is Goal.RUNNING and not is_used(spark, snapshot):
                    idle[spark.name] = self._since.get(spark.name, (node, now))
        self._since = idle

    def lingers(self, spark: str, now: float) -> bool:
        """Returns whether a Spark service, by name, keeps running although no worker needs it."""
        _, since = self._since.get(spark, ("", now))
        return now - since < self.grace_seconds

    def over(self, now: float) -> set[str]:
        """Returns the nodes with a Spark service that has been idle for long enough: their plan changes now."""
        return {node for spark, (node, _) in self._since.items() if not self.lingers(spark, now)}
