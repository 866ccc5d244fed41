"""Watches a standalone cluster through all sessions that a service has on it."""

from __future__ import annotations

from dataclasses import dataclass, field

from keelman.spark.masters.executor_watch import ExecutorWatch
from keelman.spark.masters.liveness import Liveness
from keelman.spark.masters.master_line import MasterLine
from keelman.workers.spark_master import Master, MasterKind


@dataclass(frozen=True, slots=True)
class ClusterWatch:
    """Its executors, its master, and whether the present session lives."""

    executors: ExecutorWatch
    line: MasterLine
    liveness: Liveness = field(default_factory=Liveness)

    @classmethod
    def of(cls, master: Master, line: MasterLine, executor_cores: int) -> ClusterWatch | None:
        """Returns the watch of a standalone cluster, None for other masters. `executor_cores` are those of each
        executor."""
        if master.kind is not MasterKind.STANDALONE:
            return None
        return cls(ExecutorWatch(master.shown, executor_cores), line)

    def begin(self) -> None:
        """Begins with another session."""
        self.liveness.begin(self.line.returns)

    def dead(self, executors: int, jobs: int, attached: int) -> str:
        """Returns why the present session is dead, empty while it may live."""
        return self.liveness.note(executors=executors, jobs=jobs, attached=attached, returns=self.line.returns)
