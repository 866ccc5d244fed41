"""Derives a cluster's life from its processes, in Ohara's terms: state, live nodes and error. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from keelman.api.connect.v1 import broker_cluster_pb2 as clusters
from keelman.api.node.v1 import workload_pb2 as work
from keelman.api.node.v1.workload_pb2 import Workload
from keelman.gateway.ohara.state.hosts import Hosts

PENDING, RUNNING, FAILED = "PENDING", "RUNNING", "FAILED"
_WANTED = frozenset({clusters.CLUSTER_STATE_STARTING, clusters.CLUSTER_STATE_RUNNING, clusters.CLUSTER_STATE_DEGRADED})
_WELL = {
    PENDING: (clusters.CLUSTER_STATE_RUNNING,),
    RUNNING: (clusters.CLUSTER_STATE_RUNNING, clusters.CLUSTER_STATE_STARTING),
}
"""For each of Ohara's states, our states that are no error: one process is up while others start."""
_ENDED = frozenset({work.WORKLOAD_STATE_STOPPED, work.WORKLOAD_STATE_REMOVED})
_UP = frozenset({work.WORKLOAD_STATE_RUNNING, work.WORKLOAD_STATE_STOPPING})


@dataclass(frozen=True, slots=True)
class Life:
    """The life of a cluster. `state` is empty if it has no process and needs none."""

    state: str = ""
    alive_nodes: tuple[str, ...] = ()
    error: str = ""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of an answer, without unknown ones."""
        shown: dict[str, Any] = {"aliveNodes": list(self.alive_nodes)}
        if self.state:
            shown["state"] = self.state
        if self.error:
            shown["error"] = self.error
        return shown


GONE = Life()


def is_wanted(state: clusters.ClusterState.ValueType) -> bool:
    """Tells whether a cluster in this state has the goal to run."""
    return state in _WANTED


def is_begun(workloads: Iterable[Workload]) -> bool:
    """Tells whether a node has begun to start any process of a cluster with the goal to run."""
    return any(
        w.status.state not in (work.WORKLOAD_STATE_UNSPECIFIED, *_ENDED) and w.status.generation == w.generation
        for w in workloads
        if w.goal == work.WORKLOAD_GOAL_RUNNING
    )


def present(workloads: Iterable[Workload], *, wanted: bool) -> list[Workload]:
    """Returns the processes that count: without ended ones; with `wanted` only those with the goal to run."""
    return [
        w
        for w in workloads
        if not (wanted and w.goal == work.WORKLOAD_GOAL_REMOVED)
        and (w.status.state not in _ENDED if not wanted else w.goal == work.WORKLOAD_GOAL_RUNNING)
        and (wanted or w.status.state != work.WORKLOAD_STATE_UNSPECIFIED)
    ]


def life_of(
    workloads: Iterable[Workload], state: clusters.ClusterState.ValueType, message: str = "", *, hosts: Hosts
) -> Life:
    """Returns the life of a cluster with these processes; `state` and `message` are the cluster's own.

    PENDING if any process is not up yet; else RUNNING if any is up, whatever the state of the others; else FAILED. A
    process that died and is started again counts as dead until it is up. A process of a cluster that stops may still
    come up until its agent has reported its end.
    """
    wanted = is_wanted(state)
    there = present(workloads, wanted=wanted)
    up = [w for w in there if w.status.state in _UP and w.node not in hosts.offline]
    dead = {w.node: _why_dead(w, hosts) for w in there if w not in up and _is_dead(w, hosts)}
    error = "; ".join(f"{hosts.shown(node)}: {why}" for node, why in sorted(dead.items()))
    alive = tuple(hosts.shown(node) for node in sorted({w.node for w in up}))
    if len(up) + len(dead) < len(there):
        found = PENDING
    elif up:
        found = RUNNING
    elif dead:
        found = FAILED
    else:
        found = PENDING if wanted or state == clusters.CLUSTER_STATE_STOPPING else ""
    if not error and found in (PENDING, RUNNING) and state not in _WELL.get(found, ()):
        error = message
    return Life(found, alive, error)


def _is_dead(workload: Workload, hosts: Hosts) -> bool:
    status = workload.status
    if workload.node in hosts.offline or status.state == work.WORKLOAD_STATE_FAILED:
        return True
    return status.generation == workload.generation and status.restarts > 0 and status.state not in _UP


def _why_dead(workload: Workload, hosts: Hosts) -> str:
    if workload.node in hosts.offline:
        return "the node is offline"
    status = workload.status
    if status.message or status.reason:
        return status.message or status.reason
    return f"the process ended with {status.exit_code}" if status.HasField("exit_code") else "the process ended"
