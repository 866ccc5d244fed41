"""Decides which worker is next in a change that reaches them one by one, and the progress of that. Pure.

Each worker runs with the change before the next one gets it. A worker that fails with it, or whose process ends again
and again, stops the rollout: the others keep their specs until the cluster's spec is changed again, and that change
begins with the worker that failed. Plugins that the first worker cannot load are rolled back: that worker gets the
former ones again. Workers on offline nodes are passed over; they get the change when they are back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from keelman.model.autoscale import NOT_SCALED, Scaling
from keelman.model.cluster import ClusterGoal, Rollout, RolloutState, WorkerCluster, WorkerClusterSpec
from keelman.model.node import NodeState
from keelman.model.plugins.plugin_set import PluginHistory, PluginSet, WentBack
from keelman.model.workload import PLUGIN_PROBLEMS, Goal, ProcessState, Workload
from keelman.state.resources.snapshot import Snapshot

MAX_RESTARTS = 1
"""One end of a process may be chance."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A worker that has failed with the change, and a worker that is not ready with it yet."""

    failed: Workload | None
    busy: Workload | None

    @property
    def may_go_on(self) -> bool:
        """True when the next worker may be changed."""
        return self.failed is None and self.busy is None


def standing(workers: Sequence[Workload], outdated: Collection[str], snapshot: Snapshot) -> Standing:
    """Returns the progress of a rollout among these workers, of which some are outdated."""
    new = [w for w in workers if w.name not in outdated and not snapshot.is_offline(w.node)]
    return Standing(
        failed=next((w for w in new if has_failed(w)), None),
        busy=next((w for w in new if not w.is_in(ProcessState.RUNNING)), None),
    )


def next_of(
    workers: Sequence[Workload], outdated: Collection[str], blocked: Collection[str], snapshot: Snapshot
) -> Workload | None:
    """Returns the worker that gets the change now, if any may: those that do not run come first. `blocked`: those that
    cannot have it now."""
    if not standing(workers, {*outdated, *blocked}, snapshot).may_go_on:
        return None
    online = [w for w in workers if snapshot.nodes[w.node].state is NodeState.ONLINE]
    candidates = [w for w in online if w.name in outdated and w.name not in blocked]
    return min(candidates, key=lambda w: (w.is_in(ProcessState.RUNNING), w.number), default=None)


def updated(cluster: WorkerCluster, spec: WorkerClusterSpec) -> WorkerCluster:
    """Returns the cluster with another spec: a new generation, and a rollout if the change reaches processes."""
    generation = cluster.generation + 1
    of_process = cluster.process_generation if spec.runs_as(cluster.spec) else generation
    history = cluster.plugin_history
    if spec.plugin_set != cluster.spec.plugin_set and cluster.status.ready_workers and cluster.status.rollout is None:
        history = PluginHistory(former=cluster.plugin_set)  # its workers did load these plugins
    return replace(
        cluster, spec=spec, generation=generation, process_generation=of_process, note="", plugin_history=history,
        scaling=_kept_scaling(cluster, spec),
    )  # fmt: skip


def _kept_scaling(cluster: WorkerCluster, spec: WorkerClusterSpec) -> Scaling:
    """Returns the cluster's scaling; a cluster that is autoscaled from now on begins with its present number of
    workers."""
    if spec.autoscale is None:
        return NOT_SCALED
    return cluster.scaling if cluster.spec.autoscale is not None else Scaling(workers=cluster.wanted_workers)


def to_go_back(cluster: WorkerCluster, workers: Sequence[Workload]) -> WentBack | None:
    """Returns the reason why a cluster goes back to its former set of plugins: a worker with the present set cannot
    load it, and none has loaded it; None when there is nothing to go back from, or to."""
    history, generation = cluster.plugin_history, cluster.process_generation
    if cluster.went_back is not None or history.former in (None, cluster.spec.plugin_set):
        return None
    newest = [w for w in workers if w.goal is Goal.RUNNING and w.trial.cluster_generation == generation]
    if any(w.is_in(ProcessState.RUNNING) for w in newest):
        return None
    for worker in newest:
        status = worker.current
        if status is not None and status.state is ProcessState.FAILED and status.reason in PLUGIN_PROBLEMS:
            return WentBack(generation, _name(worker), status.message or status.reason)
    return None


def restarted(cluster: WorkerCluster) -> WorkerCluster:
    """Returns the cluster with a restart of all its workers, one by one."""
    generation = cluster.generation + 1
    return replace(cluster, generation=generation, process_generation=generation, restart=generation)


def has_failed(worker: Workload) -> bool:
    """Returns True for a worker that did not come up with its present spec, or whose process ends again and again."""
    current = worker.current
    if current is None:
        return False
    return current.state is ProcessState.FAILED or current.restarts - worker.trial.restarts > MAX_RESTARTS


def rollout_of(cluster: WorkerCluster, workers: Sequence[Workload], snapshot: Snapshot) -> Rollout | None:
    """Returns the progress of a cluster's rollout; None when none is under way and the last one came through."""
    if cluster.goal is not ClusterGoal.RUNNING:
        return None
    running = [w for w in workers if w.goal is Goal.RUNNING]
    if (back := cluster.went_back) is not None:
        message = f"{back.message}; its workers are back at {_words(cluster.plugin_set)}"
        return Rollout(RolloutState.HALTED, 0, len(running), back.worker, message)
    outdated = {w.name for w in running if w.has_run and w.trial.cluster_generation != cluster.process_generation}
    if not outdated and not any(w.trial.is_open for w in running):
        return None
    updated = sum(w.name not in outdated and w.is_in(ProcessState.RUNNING) for w in running)
    at = standing(running, outdated, snapshot)
    if at.failed is not None:
        return Rollout(RolloutState.HALTED, updated, len(running), _name(at.failed), _why(at.failed))
    away = [w for w in running if w.name in outdated and snapshot.is_offline(w.node)]
    waits = [f"{_name(w)} waits for node {w.node}, which is offline" for w in away]
    return Rollout(
        RolloutState.ROLLING, updated, len(running), "" if at.busy is None else _name(at.busy), "; ".join(waits)
    )


def _words(plugins: PluginSet) -> str:
    return ", ".join(map(str, plugins.refs)) or "no plugins"


def _name(worker: Workload) -> str:
    return worker.name.partition("/")[2]


def _why(worker: Workload) -> str:
    status = worker.status
    said = "" if status is None else status.message or status.reason
    if worker.is_in(ProcessState.FAILED):
        return said or "it failed"
    again = 0 if status is None else status.restarts - worker.trial.restarts
    return f"its process ended {again} times" + (f": {said}" if said else "")
