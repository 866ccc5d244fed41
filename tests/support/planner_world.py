"""A world of words for the planner's tests: commands change it, the planner plans for it, its agents obey at once."""

import dataclasses
from datetime import UTC, datetime

from keelman.model.cluster import (
    BrokerCluster,
    BrokersSeen,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
)
from keelman.model.node import Node, NodeState
from keelman.model.workload import BrokerSpec, Goal, ProcessState, Workload, WorkloadStatus
from keelman.state.planning.draft import Limits
from keelman.state.planning.kept_brokers import brokers_of, running_mark
from keelman.state.planning.planner import Plan, make_plan
from keelman.state.planning.status import broker_cluster_status, worker_cluster_status
from keelman.state.snapshot import Snapshot
from support.script_world import ScriptWorld

TIME = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Limits(worker_ports=range(8083, 8087), broker_ports=range(9092, 9100), spark_ports=range(7430, 7433))
OBEYED = {
    Goal.RUNNING: ProcessState.RUNNING,
    Goal.STOPPED: ProcessState.STOPPED,
    Goal.REMOVED: ProcessState.REMOVED,
}
GOALS = {"start": ClusterGoal.RUNNING, "stop": ClusterGoal.STOPPED, "delete": ClusterGoal.DELETED}


class World(ScriptWorld):
    """A snapshot that can be written."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.brokers: dict[str, BrokerCluster] = {}
        self.workers: dict[str, WorkerCluster] = {}
        self.workloads: dict[str, Workload] = {}
        self.uids = 0

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(dict(self.nodes), dict(self.brokers), dict(self.workers), dict(self.workloads))

    def do_node(self, name: str, state: str, host: str = "127.0.0.1") -> None:
        self.nodes[name] = Node(name, name, TIME, TIME, NodeState(state.upper()), f"{host}:7420")

    def do_managed(self, name: str, nodes: str, controllers: str = "0", port: str = "0", retention: str = "") -> None:
        properties = {"log.retention.hours": retention} if retention else {}
        spec = ManagedBrokers(tuple(nodes.split(",")), properties, int(controllers), int(port))
        made = BrokerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, spec, "kafka-id")
        if name in self.brokers:
            old = self.brokers[name]
            made = dataclasses.replace(old, spec=spec, generation=old.generation + 1)
        self.brokers[name] = made

    def do_synced(self, name: str) -> None:
        cluster = self.brokers[name]
        mark = running_mark(cluster, brokers_of(self.snapshot, cluster))
        self.brokers[name] = dataclasses.replace(cluster, seen=BrokersSeen(in_sync=mark))

    def do_specs(self, name: str) -> list[str]:
        brokers = brokers_of(self.snapshot, self.brokers[name])
        specs = [(b, b.spec) for b in brokers if isinstance(b.spec, BrokerSpec)]
        roles = {True: "controller", False: "broker only"}
        return [f"{b.name}: {roles[s.controller]}, {s.replicas} replicas, voters {s.voters or '-'}" for b, s in specs]

    def do_external(self, name: str, bootstrap: str) -> None:
        spec = ExternalBrokers(bootstrap)
        self.brokers[name] = BrokerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, spec, reachable=True)

    def do_workers(self, name: str, on: str, count: str = "0", nodes: str = "") -> None:
        spec = WorkerClusterSpec(on, tuple(nodes.split(",")) if nodes else (), int(count))
        self.workers[name] = WorkerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.STOPPED, spec)

    def do_start(self, what: str, name: str) -> None:
        self._goal(what, name, "start")

    def do_stop(self, what: str, name: str) -> None:
        self._goal(what, name, "stop")

    def do_delete(self, what: str, name: str) -> None:
        self._goal(what, name, "delete")

    def _goal(self, what: str, name: str, verb: str) -> None:
        clusters = self.brokers if what == "brokers" else self.workers
        clusters[name] = dataclasses.replace(clusters[name], goal=GOALS[verb])

    def do_report(self, name: str, state: str, reason: str = "") -> None:
        workload = self.workloads[name]
        status = WorkloadStatus(ProcessState(state), workload.generation, reason=reason, message=reason.lower())
        ran = workload.has_run or status.state is ProcessState.RUNNING
        self.workloads[name] = dataclasses.replace(workload, status=status, has_run=ran)

    def do_obey(self) -> None:
        for workload in list(self.workloads.values()):
            if self.nodes[workload.node].state is NodeState.ONLINE:
                self.do_report(workload.name, OBEYED[workload.goal])

    def do_plan(self) -> list[str]:
        plan = make_plan(self.snapshot, LIMITS)
        said = self.apply(plan)
        again = make_plan(self.snapshot, LIMITS)
        assert again.is_empty, f"planning again is not empty: {again}"
        return said or ["nothing to do"]

    def do_show(self) -> list[str]:
        lines = []
        for name, brokers in sorted(self.brokers.items()):
            status = broker_cluster_status(brokers, self.snapshot)
            lines.append(f"brokers {name}: {status.state} [{status.bootstrap_servers}] {status.message}".rstrip())
        for name, workers in sorted(self.workers.items()):
            seen = worker_cluster_status(workers, self.snapshot)
            ready = f"{seen.ready_workers}/{workers.spec.wanted_workers}"
            lines.append(f"workers {name}: {seen.state} {ready} {seen.message}".rstrip())
        return lines + [self._line("  ", w) for _, w in sorted(self.workloads.items())]

    def worker_status(self, name: str) -> WorkerClusterStatus:
        return worker_cluster_status(self.workers[name], self.snapshot)

    def apply(self, plan: Plan) -> list[str]:
        said = []
        for workload in plan.put:
            old = self.workloads.get(workload.name)
            if old is None:
                self.uids += 1
                workload = dataclasses.replace(workload, uid=f"uid-{self.uids}")  # noqa: PLW2901
            self.workloads[workload.name] = workload
            said.append(self._line("+ " if old is None else "~ ", workload))
        for name in plan.drop:
            del self.workloads[name]
            said.append(f"- {name}")
        for name in plan.gone_worker_clusters:
            del self.workers[name]
            said.append(f"- workers {name}")
        for name in plan.gone_broker_clusters:
            del self.brokers[name]
            said.append(f"- brokers {name}")
        for name, note in plan.broker_notes.items():
            self.brokers[name] = dataclasses.replace(self.brokers[name], note=note)
            said.append(f"! brokers {name}: {note}")
        for name, note in plan.worker_notes.items():
            self.workers[name] = dataclasses.replace(self.workers[name], note=note)
            said.append(f"! workers {name}: {note}")
        return said

    @staticmethod
    def _line(mark: str, workload: Workload) -> str:
        ports = ",".join(str(p) for p in sorted(workload.ports))
        return (
            f"{mark}{workload.name} on {workload.node} ports {ports} generation {workload.generation} {workload.goal}"
        )
