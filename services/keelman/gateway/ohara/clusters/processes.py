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


def present(workloads: Iterable[Workload], *, to_run: bool) -> list[Workload]:
    """Returns the processes that count: without ended ones; with `to_run` only those with the goal to run."""
    return [
        w
        for w in workloads
        if not (to_run and w.goal == work.WORKLOAD_GOAL_REMOVED)
        and (w.status.state not in _ENDED if not to_run else w.goal == work.WORKLOAD_GOAL_RUNNING)
        and (to_run or w.status.state != work.WORKLOAD_STATE_UNSPECIFIED)
    ]


def life_of(
    workloads: Iterable[Workload], state: clusters.ClusterState.ValueType, message: str = "", *, hosts: Hosts
) -> Life:
    """Returns the life of a cluster with these processes; `state` and `message` are the cluster's own.

    PENDING if any process is not up yet; else RUNNING if any is up, whatever the state of the others; else FAILED. A
    process that died and is started again counts as dead until it is up. A process of a cluster that stops may still
    come up until its agent has reported its end.
    """
    runs = is_wanted(state)
    there = present(workloads, to_run=runs)
    up = [w for w in there if w.status.state in _UP and w.node not in hosts.offline]
    dead = {w.node: _why_dead(w, hosts) for w in there if w not in up and _is_dead(w, hosts)}
    error = "; ".join(f"{hosts.shown(node)}: {reason}" for node, reason in sorted(dead.items()))
    alive = tuple(hosts.shown(node) for node in sorted({w.node for w in up}))
    if len(up) + len(dead) < len(there):
        state_word = PENDING
    elif up:
        state_word = RUNNING
    elif dead:
        state_word = FAILED
    else:
        state_word = PENDING if runs or state == clusters.CLUSTER_STATE_STOPPING else ""
    if not error and state_word in (PENDING, RUNNING) and state not in _WELL.get(state_word, ()):
        error = message
    return Life(state_word, alive, error)


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
