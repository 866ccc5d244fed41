"""Holds a plan in the making: the workloads as it will leave them, and the ports that are free for them. No I/O."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from keelman.model.cluster import ClusterGoal, ExternalBrokers, WorkerCluster
from keelman.model.node import Node
from keelman.model.plugins.plugin_set import WentBack
from keelman.model.workload import (
    NO_LIMITS,
    NO_TRIAL,
    Goal,
    ProcessState,
    ResourceLimits,
    Trial,
    Workload,
    WorkloadKind,
    WorkloadSpec,
    broker_name,
)
from keelman.state.planning.kept_brokers import nodes_with_brokers, numbers_of
from keelman.state.planning.places import Figures, Places, own_figures
from keelman.state.resources.snapshot import WORKLOAD, Snapshot

PORT_TAKEN = "PORT_TAKEN"


@dataclass(frozen=True, slots=True)
class Limits:
    """The ports that the planner may give out, and the settings that it needs beside the snapshot."""

    worker_ports: range
    broker_ports: range
    spark_ports: range
    spark_master: str = "local[256,1]"
    events_broker_cluster: str = "default"
    chosen_ports: range = range(10_000, 20_000)
    """The range for creates that leave the choice of ports to keelman; no plan uses them."""
    buckets: str = ""
    """The server of buckets, and their region, for the agents' log delivery."""
    buckets_region: str = ""
    policy_rules: Mapping[str, str] = field(default_factory=dict)
    """Worker properties with the installation's policy for connectors."""
    link_tls: bool = False
    """Drivers of Spark clusters and their workers have certificates of the installation's CA."""


class NoPort(Exception):
    """No port of a range is free on a host."""


class Draft:
    """The workloads as the plan will leave them."""

    def __init__(self, snapshot: Snapshot, limits: Limits, figures: Figures = own_figures) -> None:
        self.snapshot = snapshot
        self.limits = limits
        self.made = snapshot.draft()
        """The snapshot as the plan will leave it; only the methods here put into it."""
        self.workloads = self.made.workloads
        self.places = Places(self.made, figures)
        self.freed = False
        """True when the plan has freed a port or a place since this was last set to False."""
        self.sparks: dict[str, Workload] = {}
        """Spark services that this plan wants to run, by name."""
        self.broker_notes: dict[str, str] = {}
        self.worker_notes: dict[str, str] = {}
        self.spark_notes: dict[str, str] = {}
        self.went_back: dict[str, WentBack] = {}
        """Worker clusters that go back to their former plugins in this plan."""
        self.reasons: dict[str, str] = {}
        """The reason why each workload changes, for people; a missing reason follows from the kind of change."""

    def node(self, name: str) -> Node:
        """Returns a known node."""
        return self.snapshot.nodes[name]

    def want(
        self,
        name: str,
        node: str,
        goal: Goal,
        spec: WorkloadSpec,
        *,
        limits: ResourceLimits = NO_LIMITS,
        force: bool = False,
        trial: Trial = NO_TRIAL,
        reason: str = "",
    ) -> None:
        """Plans a workload; any change for its agent is a new generation."""
        old = self.workloads.get(name)
        if old is None:
            self._put(Workload(name, node, 1, goal, spec, limits=limits, force=force, trial=trial), reason)
        elif old.node != node:
            generation = old.generation + 1
            self._put(
                Workload(name, node, generation, goal, spec, uid=old.uid, limits=limits, force=force, trial=trial),
                reason,
            )
        elif (old.goal, old.spec, old.limits, old.force) != (goal, spec, limits, force):
            tried = tuple(dict.fromkeys((*old.tried_ports, *ports_taken(old)))) if old.spec != spec else old.tried_ports
            self._put(
                dataclasses.replace(
                    old, goal=goal, spec=spec, generation=old.generation + 1, tried_ports=tried, limits=limits,
                    force=force, trial=trial,
                ),
                reason,
            )  # fmt: skip
        elif old.trial != trial:
            self.keep(dataclasses.replace(old, trial=trial))

    def keep(self, workload: Workload) -> None:
        """Stores a workload in which only the planner's notes changed: its agent has nothing to do."""
        if self.workloads.get(workload.name) != workload:
            self.made.put(workload)

    def set_goal(self, workload: Workload, goal: Goal, *, force: bool = False, reason: str = "") -> None:
        """Plans a workload with another goal."""
        self.want(
            workload.name, workload.node, goal, workload.spec, limits=workload.limits, force=force,
            trial=workload.trial, reason=reason,
        )  # fmt: skip

    def remove(self, workload: Workload, *, force: bool = False, reason: str = "") -> None:
        """Plans the removal of a workload by its node; forgets it when that is done, or if the node is offline."""
        stranded = self.snapshot.is_offline(workload.node) and workload.kind is not WorkloadKind.BROKER
        if stranded or (workload.goal is Goal.REMOVED and workload.is_in(ProcessState.REMOVED)):
            self.forget(workload, f"node {workload.node} is offline" if stranded else "it has ended")
        else:
            self.set_goal(workload, Goal.REMOVED, force=force or workload.force, reason=reason)

    def forget(self, workload: Workload, reason: str) -> None:
        """Forgets a workload."""
        self.reasons[workload.name] = reason
        self.made.drop(WORKLOAD, workload.name)
        self.freed = True
        self.places.changed(workload.node)

    def _put(self, workload: Workload, reason: str) -> None:
        old = self.workloads.get(workload.name)
        if reason:
            self.reasons[workload.name] = reason
        self.made.put(workload)
        self.places.changed(workload.node)
        if old is not None and old.node != workload.node:
            self.freed = True
            self.places.changed(old.node)

    def ports(self, node: str, allowed: range, count: int = 1, tried: tuple[int, ...] = ()) -> list[int]:
        """Returns the lowest free ports of the range on the node's host, which other nodes may share. Raises NoPort.

        Ports in the spec of a cluster count as taken, except in a range of one port: that port comes from a spec.
        """
        free: list[int] = []
        named = len(allowed) == 1
        for port in allowed:
            if len(free) == count:
                break
            if port not in tried and (named or not self.made.naming(port)) and not self.made.port_holders(node, port):
                free.append(port)
        if len(free) < count:
            raise NoPort(f"no free port is left in {allowed[0]}-{allowed[-1]} on node {node}")
        return free

    def tenant_on(self, node: str, cluster: WorkerCluster) -> str:
        """Returns the tenant of a cluster's workers on a node; empty where the node has one user for all workloads."""
        return cluster.tenant if self.node(node).tenant_users else ""

    def workers_of(self, cluster: str) -> list[Workload]:
        """Returns the workers of a cluster, in the order of their numbers."""
        return self.made.workloads_in(WorkloadKind.WORKER, cluster)

    def client_properties_of(self, cluster: WorkerCluster) -> Mapping[str, str] | None:
        """Returns the client properties of a worker cluster for its brokers, empty if they need none; None while
        brokers with access rules do not know it yet."""
        brokers = self.snapshot.broker_clusters.get(cluster.spec.broker_cluster)
        if brokers is None:
            return {}
        return (cluster.spec.credentials or None) if brokers.spec.has_rules else brokers.spec.connection

    @property
    def reports_client_properties(self) -> Mapping[str, str]:
        """The client properties of those that write reports; empty if the brokers need none."""
        brokers = self.snapshot.broker_clusters.get(self.limits.events_broker_cluster)
        return {} if brokers is None else brokers.spec.reports_connection

    def bootstrap_of(self, name: str) -> tuple[str, int]:
        """Returns bootstrap servers and number of brokers of a broker cluster; empty and 0 until all brokers that it
        gets now are placed."""
        cluster = self.snapshot.broker_clusters.get(name)
        if cluster is None or cluster.goal is ClusterGoal.DELETED:
            return "", 0
        if isinstance(cluster.spec, ExternalBrokers):
            return cluster.spec.bootstrap_servers, len(cluster.spec.bootstrap_servers.split(","))
        present = self.snapshot.workloads_in(WorkloadKind.BROKER, name)
        numbers = numbers_of(nodes_with_brokers(self.snapshot, cluster), present)
        brokers = [self.workloads.get(broker_name(name, number)) for number in numbers.values()]
        if not brokers or any(b is None for b in brokers):
            return "", 0
        return ",".join(b.address for b in brokers if b is not None), len(brokers)


def ports_taken(workload: Workload) -> tuple[int, ...]:
    """Returns the ports that the agent found taken, when that is why it failed at this generation: those in its
    message, else all ports of the workload."""
    current = workload.current
    if current is None or current.state is not ProcessState.FAILED or current.reason != PORT_TAKEN:
        return ()
    named = workload.ports & {int(word) for word in re.findall(r"\d+", current.message)}
    return tuple(sorted(named or workload.ports))
