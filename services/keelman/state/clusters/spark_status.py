"""Derives the status of Spark clusters from their drivers. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keelman.model.cluster import ClusterState
from keelman.model.spark_cluster import SparkCluster
from keelman.model.workload import SPARK_PROBLEMS, Goal, ProcessState, Workload, WorkloadKind
from keelman.state.resources.snapshot import Snapshot

NODE_OFFLINE, NOT_PLACED = "NODE_OFFLINE", "NOT_PLACED"
"""Reasons of a Spark cluster: the node of a driver is offline; a driver has no node."""


@dataclass(frozen=True, slots=True)
class SparkClusterStatus:
    """The observed status of a Spark cluster. `reason` is for programs, `message` for people."""

    state: ClusterState
    reason: str = ""
    message: str = ""


def present_drivers(name: str, snapshot: Snapshot) -> list[Workload]:
    """Returns the drivers of a Spark cluster that shall run, in the order in which workers try them."""
    return [d for d in snapshot.workloads_in(WorkloadKind.SPARK, name) if d.goal is Goal.RUNNING]


def spark_cluster_status(cluster: SparkCluster, snapshot: Snapshot) -> SparkClusterStatus:
    """Returns the status: a driver that lacks executors counts more than one that does not run, since the drivers with
    workers are those that can tell."""
    drivers = present_drivers(cluster.name, snapshot)
    if not snapshot.needs_drivers(cluster.name):
        if any(d.is_in(ProcessState.RUNNING) for d in drivers):
            return SparkClusterStatus(ClusterState.STOPPING, message="no worker cluster that names it runs")
        return SparkClusterStatus(ClusterState.STOPPED)
    problems = [(reason, text) for driver in drivers for reason, text in _problems(driver, snapshot)]
    if cluster.note:
        problems.append((NOT_PLACED, cluster.note))
    problems.sort(key=lambda problem: problem[0] not in SPARK_PROBLEMS)
    reason = problems[0][0] if problems else ""
    message = "; ".join(text for _, text in problems)
    if not is_served(drivers, snapshot):
        return SparkClusterStatus(ClusterState.DEGRADED if problems else ClusterState.STARTING, reason, message)
    if problems:
        return SparkClusterStatus(ClusterState.DEGRADED, reason, message)
    whole = len(drivers) == cluster.spec.wanted_drivers and all(d.is_in(ProcessState.RUNNING) for d in drivers)
    return SparkClusterStatus(ClusterState.RUNNING if whole else ClusterState.STARTING)


def is_served(drivers: Sequence[Workload], snapshot: Snapshot) -> bool:
    """Returns whether one of these drivers answers workers."""
    return any(d.is_in(ProcessState.RUNNING) and not snapshot.is_offline(d.node) for d in drivers)


def _problems(driver: Workload, snapshot: Snapshot) -> list[tuple[str, str]]:
    if snapshot.is_offline(driver.node):
        return [(NODE_OFFLINE, f"{driver.name}: node {driver.node} is offline")]
    status = driver.current
    if status is not None and (driver.is_broken or status.reason in SPARK_PROBLEMS):
        return [(status.reason or str(status.state), f"{driver.name}: {status.message or status.reason or 'failed'}")]
    return []
