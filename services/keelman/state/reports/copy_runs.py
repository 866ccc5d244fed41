"""Keeps the reported copy runs in memory, by task: a report costs in proportion to the copy runs of its own task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from keelman.api.copy.v1 import copy_run_pb2 as pb
from keelman.model.workload import (
    ProcessState,
    SparkSpec,
    WorkerSpec,
    Workload,
    WorkloadKind,
    spark_cluster_of,
    spark_of,
)
from keelman.rpc.pages import copy_run_key
from keelman.rpc.times import from_timestamp
from keelman.state.resources.snapshot import Snapshot

ENDED = (pb.COPY_RUN_STATE_ENDED, pb.COPY_RUN_STATE_FAILED)
# States in which a copy run has fenced its predecessor, which therefore has ended, whatever its last report was.
FENCING = (pb.COPY_RUN_STATE_FENCED, pb.COPY_RUN_STATE_RUNNING, pb.COPY_RUN_STATE_DRAINING, pb.COPY_RUN_STATE_ENDED)
# States with a process. One that just started may copy before its agent sees it healthy.
ALIVE = (ProcessState.STARTING, ProcessState.RUNNING, ProcessState.STOPPING)
KEPT_OF_A_TASK = 10
LOST = "LOST"
NOBODY = (0, "")
Task: TypeAlias = tuple[str, str, int]
"""Worker cluster, connector and task."""
_Runs: TypeAlias = dict[str, pb.CopyRun]
"""Copy runs by uid."""


@dataclass(slots=True)
class CopyRuns:
    """The newest report of each copy run. `number` grows with each accepted report."""

    number: int = 0
    _runs: dict[str, tuple[float, pb.CopyRun]] = field(default_factory=dict)
    _tasks: dict[Task, dict[int, _Runs]] = field(default_factory=dict)
    """By task and part: each part has one copy run at a time."""
    _changes: dict[Task, int] = field(default_factory=dict)
    """The number of each task's last report, in the order of the numbers."""
    _stale: set[Task] = field(default_factory=set)

    def fold(self, run: pb.CopyRun, seen: float) -> list[str] | None:
        """Stores a report; returns the uids of copy runs dropped for it, None when a newer report is known."""
        former = self._runs.get(run.uid)
        if former is not None and former[0] > seen:
            return None
        if former is not None and (_task(former[1]), former[1].part) != (_task(run), run.part):
            self.drop(run.uid)
        task = _task(run)
        self._runs[run.uid] = (seen, run)
        siblings = self._tasks.setdefault(task, {}).setdefault(run.part, {})
        siblings[run.uid] = run
        self.number += 1
        self._changes.pop(task, None)
        self._changes[task] = self.number
        dropped = _beyond_kept(siblings)
        for uid in dropped:
            self.drop(uid)
        return dropped

    def drop(self, uid: str) -> None:
        """Forgets a copy run."""
        _, run = self._runs.pop(uid, (0.0, None))
        if run is None:
            return
        task = _task(run)
        parts = self._tasks[task]
        del parts[run.part][uid]
        if not parts[run.part]:
            del parts[run.part]
        if not parts:
            del self._tasks[task], self._changes[task]

    def sweep(self, gone: Collection[str], is_deleted: Callable[[str, str], bool]) -> list[str]:
        """Forgets the copy runs of worker clusters that are gone, and those of connectors that are deleted and were so
        at the last sweep too; returns their uids. `is_deleted` gets a worker cluster and a connector."""
        deleted = {task for task in self._tasks if task[0] not in gone and is_deleted(*task[:2])}
        again, self._stale = deleted & self._stale, deleted - self._stale
        due = [task for task in self._tasks if task[0] in gone or task in again]
        uids = sorted(uid for task in due for runs in self._tasks[task].values() for uid in runs)
        for uid in uids:
            self.drop(uid)
        return uids

    def tasks(self, worker_cluster: str = "", connector: str = "") -> list[Task]:
        """Returns the tasks that have copy runs, in no order; an empty name means all."""
        return [task for task in self._tasks if worker_cluster in ("", task[0]) and connector in ("", task[1])]

    def changed_since(self, number: int) -> Iterator[Task]:
        """Yields the tasks with reports after this number."""
        for task, last in reversed(self._changes.items()):
            if last <= number:
                return
            yield task

    def one(self, uid: str, snapshot: Snapshot) -> pb.CopyRun | None:
        """Returns a copy run in its present state; None if this uid is unknown."""
        _, run = self._runs.get(uid, (0.0, None))
        if run is None:
            return None
        parts = self._tasks[_task(run)]
        successor = max(_newest(parts.get(0, {})), _newest(parts[run.part]))
        return _as_it_stands(run, successor, _Processes(snapshot))

    def standing(self, tasks: Iterable[Task], snapshot: Snapshot) -> Iterator[tuple[Task, _Runs]]:
        """Yields each of these tasks with its copy runs in their present state. A copy run that no process can be
        copying any more is FAILED with reason LOST, even if no process was left to report it."""
        processes = _Processes(snapshot)
        for task in tasks:
            standing: _Runs = {}
            parts = self._tasks.get(task, {})
            of_task = _newest(parts.get(0, {}))
            for runs in parts.values():
                # The task's own copy run fences those of all parts before it.
                successor = max(of_task, _newest(runs))
                standing |= {uid: _as_it_stands(run, successor, processes) for uid, run in runs.items()}
            yield task, standing

    def all(self, snapshot: Snapshot, worker_cluster: str = "", connector: str = "") -> list[pb.CopyRun]:
        """Returns all kept copy runs in their present state, by worker cluster, connector, task and creation; an empty
        name means all."""
        standing = self.standing(self.tasks(worker_cluster, connector), snapshot)
        return sorted((run for _, runs in standing for run in runs.values()), key=copy_run_key)


@dataclass(slots=True)
class Followed:
    """Finds for one follower which copy runs changed since its last call, of a worker cluster and a connector; an empty
    name means all."""

    runs: CopyRuns
    worker_cluster: str = ""
    connector: str = ""
    _number: int = 0
    _last: dict[Task, _Runs] = field(default_factory=dict)

    def news(self, snapshot: Snapshot, *, whole: bool) -> list[pb.CopyRun]:
        """Returns the copy runs that differ from the last call's result, in order. `whole`: the snapshot has changed,
        so all are compared, not only those reported since."""
        tasks: Iterable[Task] = self.runs.changed_since(self._number)
        if whole:
            tasks = self.runs.tasks(self.worker_cluster, self.connector)
        chosen = [task for task in tasks if self.worker_cluster in ("", task[0]) and self.connector in ("", task[1])]
        standing = dict(self.runs.standing(chosen, snapshot))
        changed = [
            run
            for task, runs in standing.items()
            for uid, run in runs.items()
            if self._last.get(task, {}).get(uid) != run
        ]
        if whole:
            self._last = standing
        else:
            self._last.update(standing)
        self._number = self.runs.number
        return sorted(changed, key=copy_run_key)


@dataclass(slots=True)
class _Processes:
    """The processes of copy runs, by a snapshot. Each worker cluster is looked up once."""

    snapshot: Snapshot
    _workers: dict[str, dict[str, Workload]] = field(default_factory=dict)

    def why_lost(self, run: pb.CopyRun) -> str:
        """Returns why no process can be copying it; empty when one can."""
        worker = self._of(run.worker_cluster).get(run.worker_id)
        if worker is None:
            return f"no worker of its worker cluster has the address {run.worker_id} any more"
        created = from_timestamp(run.create_time)
        if cluster := spark_cluster_of(worker):
            dead = "" if self.snapshot.is_offline(worker.node) else _why_dead(worker, created)
            return dead or self._why_all_dead(cluster, created)
        spark = self.snapshot.workloads.get(spark_of(worker))
        if spark is None or not isinstance(spark.spec, SparkSpec):
            return f"its Spark service on node {worker.node} is gone"
        if self.snapshot.is_offline(worker.node):
            return ""
        return next(filter(None, (_why_dead(w, created) for w in (worker, spark))), "")

    def _why_all_dead(self, spark_cluster: str, created: datetime) -> str:
        """Returns why no driver of a Spark cluster can have a copy run, which any of them may have; empty if one
        can."""
        reasons = []
        for driver in self.snapshot.workloads_in(WorkloadKind.SPARK, spark_cluster):
            why = "" if self.snapshot.is_offline(driver.node) else _why_dead(driver, created)
            if not why:
                return ""
            reasons.append(why)
        return f"no driver of Spark cluster {spark_cluster} can have it: {'; '.join(reasons) or 'it has none'}"

    def _of(self, cluster: str) -> Mapping[str, Workload]:
        if cluster not in self._workers:
            workloads = self.snapshot.workloads_in(WorkloadKind.WORKER, cluster)
            self._workers[cluster] = {w.address: w for w in workloads if isinstance(w.spec, WorkerSpec)}
        return self._workers[cluster]


def _task(run: pb.CopyRun) -> Task:
    return run.worker_cluster, run.connector, run.task


def _age(run: pb.CopyRun) -> tuple[int, str]:
    return run.create_time.ToNanoseconds(), run.uid


def _beyond_kept(siblings: Mapping[str, pb.CopyRun]) -> list[str]:
    """Returns the uids of the oldest copy runs beyond the limit, which counts ended and other copy runs apart."""
    if len(siblings) <= KEPT_OF_A_TASK:
        return []
    ended = [run for run in siblings.values() if run.state in ENDED]
    others = [run for run in siblings.values() if run.state not in ENDED]
    return [run.uid for some in (ended, others) for run in sorted(some, key=_age, reverse=True)[KEPT_OF_A_TASK:]]


def _newest(runs: Mapping[str, pb.CopyRun]) -> tuple[int, str]:
    """Returns the creation and uid of the last copy run that has fenced those before it."""
    return max((_age(run) for run in runs.values() if run.state in FENCING), default=NOBODY)


def _as_it_stands(run: pb.CopyRun, successor: tuple[int, str], processes: _Processes) -> pb.CopyRun:
    if run.state in ENDED:
        return run
    if successor[0] > run.create_time.ToNanoseconds():
        return _lost(run, f"copy run {successor[1]} of the same task fenced it")
    reason = processes.why_lost(run)
    return _lost(run, reason) if reason else run


def _why_dead(workload: Workload, created: datetime) -> str:
    status = workload.status
    if status is None:
        return f"no process of {workload.name} is known"
    if status.state not in ALIVE:
        return f"{workload.name} is {status.state}"
    if status.start_time is not None and status.start_time > created:
        return f"{workload.name} was started again after this copy run began"
    return ""


def _lost(run: pb.CopyRun, reason: str) -> pb.CopyRun:
    shown = pb.CopyRun()
    shown.CopyFrom(run)
    shown.state, shown.reason, shown.message = pb.COPY_RUN_STATE_FAILED, LOST, reason
    shown.progress.records_per_second = shown.progress.bytes_per_second = 0.0
    return shown
