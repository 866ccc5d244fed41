"""A plan in the making: the workloads as it will leave them, and the ports that are free for them. No I/O."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from keelman.model.cluster import ClusterGoal, ExternalBrokers
from keelman.model.node import Node
from keelman.model.workload import Goal, ProcessState, Workload, WorkloadKind, WorkloadSpec, broker_name
from keelman.state.planning.kept_brokers import numbers_of
from keelman.state.snapshot import WORKLOAD, Snapshot

PORT_TAKEN = "PORT_TAKEN"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the planner may give out, and what it must know beside the snapshot."""

    worker_ports: range
    broker_ports: range
    spark_ports: range
    spark_master: str = "local[256,1]"
    events_broker_cluster: str = "default"


class NoPort(Exception):
    """No port of a range is free on a host."""


class Draft:
    """The workloads as the plan will leave them."""

    def __init__(self, snapshot: Snapshot, limits: Limits) -> None:
        self.snapshot = snapshot
        self.limits = limits
        self.made = snapshot.draft()
        """The snapshot as the plan will leave it; only the methods here put into it."""
        self.workloads = self.made.workloads
        self.broker_notes: dict[str, str] = {}
        self.worker_notes: dict[str, str] = {}

    def node(self, name: str) -> Node:
        """One that is known."""
        return self.snapshot.nodes[name]

    def want(self, name: str, node: str, goal: Goal, spec: WorkloadSpec) -> None:
        """The workload as it is to be; any change of it is a new generation."""
        old = self.workloads.get(name)
        if old is None:
            self.made.put(Workload(name, node, 1, goal, spec))
        elif old.node != node:
            self.made.put(Workload(name, node, old.generation + 1, goal, spec, uid=old.uid))
        elif (old.goal, old.spec) != (goal, spec):
            tried = tuple(dict.fromkeys((*old.tried_ports, *ports_taken(old)))) if old.spec != spec else old.tried_ports
            self.made.put(
                dataclasses.replace(old, goal=goal, spec=spec, generation=old.generation + 1, tried_ports=tried)
            )

    def set_goal(self, workload: Workload, goal: Goal) -> None:
        """The same with another goal."""
        self.want(workload.name, workload.node, goal, workload.spec)

    def remove(self, workload: Workload) -> None:
        """Asks the node to remove it; forgets it when that is done or when nobody is there to do it."""
        stranded = self.snapshot.is_offline(workload.node) and workload.kind is not WorkloadKind.BROKER
        if stranded or (workload.goal is Goal.REMOVED and workload.is_in(ProcessState.REMOVED)):
            self.made.drop(WORKLOAD, workload.name)
        else:
            self.set_goal(workload, Goal.REMOVED)

    def ports(self, node: str, wanted: range, count: int = 1, tried: tuple[int, ...] = ()) -> list[int]:
        """The lowest free ports of the range on the node's host, which other nodes may share. Raises NoPort."""
        free: list[int] = []
        for port in wanted:
            if len(free) == count:
                break
            if port not in tried and not self.made.port_holders(node, port):
                free.append(port)
        if len(free) < count:
            raise NoPort(f"no free port is left in {wanted[0]}-{wanted[-1]} on node {node}")
        return free

    def workers_on(self, node: str, *, except_for: str = "") -> list[Workload]:
        """The workers that are placed on a node."""
        found = self.made.workloads_on(node)
        return [w for w in found if w.kind is WorkloadKind.WORKER and w.name != except_for]

    def bootstrap_of(self, name: str) -> tuple[str, int]:
        """Bootstrap servers and number of brokers of a broker cluster; empty and 0 while they are not all placed."""
        cluster = self.snapshot.broker_clusters.get(name)
        if cluster is None or cluster.goal is ClusterGoal.DELETED:
            return "", 0
        if isinstance(cluster.spec, ExternalBrokers):
            return cluster.spec.bootstrap_servers, len(cluster.spec.bootstrap_servers.split(","))
        present = self.snapshot.workloads_in(WorkloadKind.BROKER, name)
        numbers = numbers_of(cluster.spec.nodes, present)
        brokers = [self.workloads.get(broker_name(name, number)) for number in numbers.values()]
        if any(b is None for b in brokers):
            return "", 0
        return ",".join(b.address for b in brokers if b is not None), len(brokers)


def ports_taken(workload: Workload) -> tuple[int, ...]:
    """The ports that the agent found taken, when that is why it failed at this generation."""
    if workload.is_in(ProcessState.FAILED) and workload.current is not None and workload.current.reason == PORT_TAKEN:
        return tuple(sorted(workload.ports))
    return ()
