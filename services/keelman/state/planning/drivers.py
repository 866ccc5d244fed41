"""Plans the drivers of Spark clusters. Pure.

A cluster has its drivers while a worker cluster that names it shall run. They are on different nodes if there are
enough, and stay there until the node is offline, is drained or no longer may have them. Running drivers move and change
one at a time, the last one first: workers link to the first one that answers, so the others have nothing to lose. Their
end is planned with that of the nodes' Spark services.
"""

from __future__ import annotations

from collections.abc import Collection

from keelman.model.node import Node, NodeState
from keelman.model.spark_cluster import SparkCluster
from keelman.model.workload import Goal, ProcessState, SparkSpec, Workload, WorkloadKind, driver_name
from keelman.state.planning.draft import Draft, NoPort, ports_taken
from keelman.state.planning.sparks import still_good

STARTED = "worker clusters that name its Spark cluster run"


def plan_drivers(draft: Draft, name: str) -> None:
    """Plans the drivers of a Spark cluster that needs them, and removes those beyond the wanted number."""
    if not draft.made.needs_drivers(name):
        return
    cluster = draft.snapshot.spark_clusters[name]
    plan = _DriversPlan(draft, cluster)
    plan.run()
    if plan.notes:
        draft.spark_notes[name] = "; ".join(dict.fromkeys(plan.notes))


def addresses_of(draft: Draft, spark_cluster: str) -> str:
    """Returns the addresses of a Spark cluster's drivers, separated by commas, in the order of their numbers; empty
    while none is placed."""
    drivers = draft.made.workloads_in(WorkloadKind.SPARK, spark_cluster)
    return ",".join(d.address for d in drivers if d.goal is Goal.RUNNING)


def still_linked(old: str, new: str) -> str:
    """Returns the old addresses of drivers while one of them is among the new ones: a worker links to that one, and
    gets the others when it starts again."""
    return old if set(old.split(",")) & set(new.split(",")) - {""} else new


class _DriversPlan:
    """The plan for the drivers of one cluster."""

    def __init__(self, draft: Draft, cluster: SparkCluster) -> None:
        self.draft = draft
        self.cluster = cluster
        self.notes: list[str] = []

    def run(self) -> None:
        wanted = self.cluster.spec.wanted_drivers
        for driver in self._drivers():
            if driver.number >= wanted:
                self.draft.remove(driver, reason=f"spec.drivers is {wanted}")
        names = [driver_name(self.cluster.name, number) for number in range(wanted)]
        for name in names:
            if (old := self.draft.workloads.get(name)) is None or old.goal is not Goal.RUNNING:
                self._start(name, old)
        for name in reversed(names):
            planned = self.draft.workloads.get(name)
            if planned is not None and planned.goal is Goal.RUNNING:
                self._renew(planned)

    def _drivers(self) -> list[Workload]:
        return self.draft.made.workloads_in(WorkloadKind.SPARK, self.cluster.name)

    def _start(self, name: str, old: Workload | None) -> None:
        """Places a driver that does not run: where it was, if it may be there."""
        if old is not None and not self._why_leave(old):
            self._put(name, old.node, STARTED)
        elif (node := self._choose(name)) is not None:
            self._put(name, node, STARTED)
        else:
            self.notes.append(self._no_place(name))

    def _renew(self, driver: Workload) -> None:
        """Moves a driver that has to leave its node, or gives it the present spec, when it may stop."""
        reason = self._why_leave(driver) or self._why_apart(driver)
        lost = self.draft.snapshot.is_offline(driver.node)
        if not lost and driver.is_in(ProcessState.RUNNING) and not self._others_run(driver):
            return
        if reason and (node := self._choose(driver.name)) is not None:
            self._put(driver.name, node, reason)
        elif reason and self._why_leave(driver):
            self.notes.append(f"{reason}: {self._no_place(driver.name)}")
        if not lost and self.draft.workloads[driver.name].node == driver.node:
            self._put(driver.name, driver.node, self._why(driver))

    def _put(self, name: str, node: str, reason: str) -> None:
        """Plans a driver on a node; notes a lack of ports."""
        try:
            spec = self._spec(self.draft.workloads.get(name), node)
        except NoPort as problem:
            self.notes.append(str(problem))
            return
        self.draft.want(name, node, Goal.RUNNING, spec, reason=reason)

    def _spec(self, old: Workload | None, node: str) -> SparkSpec:
        """Returns the spec of a driver on a node; `old` is its present workload. Raises NoPort."""
        draft, spec = self.draft, self.cluster.spec
        port, slot_port = self._ports(old, node)
        reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
        if old is not None and isinstance(old.spec, SparkSpec):
            reports = still_good(old.spec.reports_bootstrap_servers, reports)
        return SparkSpec(
            draft.node(node).host, port, spec.master, reports, dict(draft.reports_client_properties),
            tenant=self.cluster.tenant if draft.node(node).tenant_users else "",
            cluster=self.cluster.name, properties=dict(spec.properties), slot_port=slot_port,
            executor_cores=spec.executor_cores, executor_memory_mb=spec.executor_memory_mb,
            executor_python=spec.executor_python, tls=draft.limits.link_tls,
        )  # fmt: skip

    def _ports(self, old: Workload | None, node: str) -> tuple[int, int]:
        """Returns the ports for links and slots: the present ones, or the next free ones. Raises NoPort."""
        allowed = self.draft.limits.spark_ports
        if old is None or old.node != node or not isinstance(old.spec, SparkSpec):
            port, slot_port = self.draft.ports(node, allowed, 2)
            return port, slot_port
        taken, present = ports_taken(old), (old.spec.port, old.spec.slot_port)
        kept = [port for port in present if port not in taken]
        tried = (*old.tried_ports, *taken)
        free = iter(self.draft.ports(node, allowed, len(present) - len(kept), tried=tried) if taken else ())
        port, slot_port = (next(free) if port in taken else port for port in present)
        return port, slot_port

    def _others_run(self, leaving: Workload) -> bool:
        """Returns whether a driver may stop: all others on nodes that are online run."""
        others = [d for d in self._drivers() if d.goal is Goal.RUNNING and d.name != leaving.name]
        online = [d for d in others if not self.draft.snapshot.is_offline(d.node)]
        return all(d.is_in(ProcessState.RUNNING) for d in online)

    def _may_have(self, node: str) -> bool:
        return not self.cluster.spec.nodes or node in self.cluster.spec.nodes

    def _why_leave(self, driver: Workload) -> str:
        """Returns why a driver has to leave its node, for people; empty if it may stay."""
        node = driver.node
        if self.draft.snapshot.is_offline(node):
            return f"node {node} is offline"
        if self.draft.node(node).spec.draining:
            return f"node {node} is drained"
        return "" if self._may_have(node) else f"node {node} is not among spec.nodes"

    def _why_apart(self, driver: Workload) -> str:
        """Returns why a driver moves though it may stay: a driver before it is on its node, and another node has none.
        Empty if it does not."""
        before = [d for d in self._drivers() if d.number < driver.number and d.goal is Goal.RUNNING]
        if driver.node not in {d.node for d in before} or not self._candidates(self._nodes_of(driver.name)):
            return ""
        return f"node {driver.node} has another driver of its Spark cluster"

    def _nodes_of(self, apart: str) -> set[str]:
        """Returns the nodes of the other drivers."""
        return {d.node for d in self._drivers() if d.name != apart and d.goal is Goal.RUNNING}

    def _candidates(self, without: Collection[str] = ()) -> list[str]:
        """Returns the nodes that may get a driver, the least loaded first."""
        may = [node.name for node in self.draft.snapshot.nodes.values() if self._takes(node)]
        places = self.draft.places
        return sorted((n for n in may if n not in without), key=lambda n: (round(places.share(n), 6), n))

    def _takes(self, node: Node) -> bool:
        return node.takes_new and bool(node.host) and self._may_have(node.name)

    def _choose(self, name: str) -> str | None:
        """Returns the node for a driver: without another driver if there is such a node; None if there is none."""
        nodes = self._candidates(self._nodes_of(name)) or self._candidates()
        return nodes[0] if nodes else None

    def _no_place(self, name: str) -> str:
        nodes = self.draft.snapshot.nodes.values()
        among = f" among {', '.join(self.cluster.spec.nodes)}" if self.cluster.spec.nodes else ""
        if not any(n.state is NodeState.ONLINE and self._may_have(n.name) for n in nodes):
            return f"no node{among} is online to place {name} on"
        return f"no node{among} takes {name}: all are cordoned or drained"

    def _why(self, driver: Workload) -> str:
        """Returns why a driver that stays on its node gets another spec."""
        if taken := ports_taken(driver):
            return f"port {taken[0]} of its node is taken"
        if driver.spec.host != self.draft.node(driver.node).host:
            return f"its node has another address: {self.draft.node(driver.node).host}"
        return "the spec of its Spark cluster changed"
