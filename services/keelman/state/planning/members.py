"""Decides which workers of a cluster stay, which leave it, and where new ones are placed. Pure.

A worker belongs where it is: workers of a `nodes` placement to these nodes whatever their numbers are, and no worker
changes its number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from keelman.model.cluster import WorkerCluster
from keelman.model.node import Node, NodeState
from keelman.model.workload import Goal, ProcessState, Workload, WorkloadKind, worker_name
from keelman.state.planning.draft import Draft
from keelman.state.planning.places import has_labels


def leavers(draft: Draft, cluster: WorkerCluster, workers: Sequence[Workload]) -> dict[str, str]:
    """Returns the workers beyond the wanted number, by name, each with the reason."""
    if cluster.spec.nodes:
        return _misplaced(cluster, workers)
    reason = why_so_many(cluster)
    staying, reasons = list(workers), {}
    while len(staying) > cluster.wanted_workers:
        on = Counter(w.node for w in staying)
        worst = max(
            staying,
            key=lambda w: (
                _unwanted_at(draft, cluster, w.node), on[w.node], not w.is_in(ProcessState.RUNNING),
                round(_share(draft, w.node), 6), w.number,
            ),
        )  # fmt: skip
        staying.remove(worst)
        reasons[worst.name] = reason
    return reasons


def why_so_many(cluster: WorkerCluster) -> str:
    """Returns the reason for the cluster's number of workers, for people."""
    if cluster.spec.autoscale is None:
        return f"count is {cluster.spec.count}"
    return f"scaled to {cluster.wanted_workers}" + (f": {reason}" if (reason := cluster.scaling.reason) else "")


def _misplaced(cluster: WorkerCluster, workers: Sequence[Workload]) -> dict[str, str]:
    """Returns the workers that leave, with reasons. The best on each of the cluster's nodes stays: by its goal to run,
    then by running, then by the lowest number."""
    best: dict[str, Workload] = {}
    reasons = {}
    for worker in sorted(
        workers, key=lambda w: (w.goal is not Goal.RUNNING, not w.is_in(ProcessState.RUNNING), w.number)
    ):
        if worker.node not in cluster.spec.nodes:
            reasons[worker.name] = f"node {worker.node} is not among spec.nodes"
        elif worker.node in best:
            reasons[worker.name] = f"node {worker.node} has one worker of it"
        else:
            best[worker.node] = worker
    return reasons


def why_leave(draft: Draft, cluster: WorkerCluster, node: str) -> str:
    """Returns the reason why a movable worker has to leave a node, for people; empty when it may stay."""
    if draft.snapshot.is_offline(node):
        return f"node {node} is offline"
    present = draft.node(node)
    if present.spec.draining:
        return f"node {node} is drained"
    if not has_labels(present, cluster.spec.node_selector):
        return f"node {node} has not the labels {selector_words(cluster)}"
    return ""


def why_not_yet(node: Node | None, name: str) -> str:
    """Returns the reason why no new worker may be placed on a node that the spec names, for people; empty when it
    may."""
    if node is None:
        return f"node {name} is not known"
    if node.state is NodeState.EXPECTED or not node.host:
        return f"waits for node {name}: its agent has not come yet"
    if node.spec.draining:
        return f"waits for node {name}, which is drained"
    if node.spec.cordoned:
        return f"waits for node {name}, which is cordoned"
    return ""


def free_names(draft: Draft, cluster: str) -> Iterator[str]:
    """Yields names for new workers, the lowest free numbers first."""
    taken = {w.name for w in draft.workers_of(cluster)}
    taken |= {w.name for w in draft.snapshot.workloads_in(WorkloadKind.WORKER, cluster)}  # these are forgotten first
    number = 0
    while True:
        if (name := worker_name(cluster, number)) not in taken:
            yield name
        number += 1


def selector_words(cluster: WorkerCluster) -> str:
    """Returns the labels that a node must have, for people."""
    return ", ".join(f"{k}={v}" for k, v in sorted(cluster.spec.node_selector.items()))


def _unwanted_at(draft: Draft, cluster: WorkerCluster, node: str) -> int:
    """Returns how unsuitable a node is for a worker: 3 offline, 2 drained, 1 cordoned or of other labels, 0
    suitable."""
    if draft.snapshot.is_offline(node):
        return 3
    present = draft.node(node)
    if present.spec.draining:
        return 2
    return int(present.spec.cordoned or not has_labels(present, cluster.spec.node_selector))


def _share(draft: Draft, node: str) -> float:
    return draft.places.share(node) if node in draft.snapshot.nodes else 0.0
