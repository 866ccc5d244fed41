"""A world of words for the planner's tests: commands change it, the planner plans for it, its agents act at once."""

import dataclasses
from datetime import UTC, datetime

from keelman.model.cluster import (
    BrokerCluster,
    BrokersSeen,
    ClusterGoal,
    ExternalBrokers,
    ManagedBrokers,
    Rollout,
    WorkerCluster,
    WorkerClusterSpec,
    WorkerClusterStatus,
    WorkerEngine,
)
from keelman.model.node import Node, NodeFigures, NodeState
from keelman.model.plugins.plugin_set import PluginRef
from keelman.model.spark_cluster import SparkCluster, SparkClusterSpec
from keelman.model.workload import (
    BrokerSpec,
    Goal,
    ProcessState,
    ResourceLimits,
    SparkSpec,
    WorkerSpec,
    Workload,
    WorkloadKind,
    WorkloadStatus,
    spark_name,
)
from keelman.state.clusters.spark_status import spark_cluster_status
from keelman.state.clusters.status import broker_cluster_status, worker_cluster_status
from keelman.state.planning.draft import Limits
from keelman.state.planning.kept_brokers import brokers_of, running_mark
from keelman.state.planning.pinned import pinned_workloads
from keelman.state.planning.planner import Plan, make_plan
from keelman.state.planning.rollout import restarted, updated
from keelman.state.planning.scope import Scope
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, SPARK_CLUSTER, WORKER_CLUSTER, WORKLOAD, Snapshot
from support.state.snapshots import snapshot_of
from support.worlds.script import ScriptWorld

TIME = datetime(2026, 1, 1, tzinfo=UTC)
LIMITS = Limits(worker_ports=range(8083, 8087), broker_ports=range(9092, 9100), spark_ports=range(7430, 7440))
OBEYED = {
    Goal.RUNNING: ProcessState.RUNNING,
    Goal.STOPPED: ProcessState.STOPPED,
    Goal.REMOVED: ProcessState.REMOVED,
}
GOALS = {"start": ClusterGoal.RUNNING, "stop": ClusterGoal.STOPPED, "delete": ClusterGoal.DELETED}


def changes(old: Snapshot, new: Snapshot) -> list[tuple]:
    """The old and the new resource, for each that differs."""
    pairs = []
    for noun in (NODE, BROKER_CLUSTER, WORKER_CLUSTER, SPARK_CLUSTER, WORKLOAD):
        before, after = old.resources(noun), new.resources(noun)
        pairs += [(before.get(n), after.get(n)) for n in before.keys() | after.keys()]
    return [pair for pair in pairs if pair[0] != pair[1]]


class World(ScriptWorld):
    """A snapshot that commands can change."""

    limits = LIMITS

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.brokers: dict[str, BrokerCluster] = {}
        self.workers: dict[str, WorkerCluster] = {}
        self.sparks: dict[str, SparkCluster] = {}
        self.workloads: dict[str, Workload] = {}
        self.lingering: set[str] = set()
        """Spark services that may run without a worker."""
        self.uids = 0

    def plan(self, scope: Scope | None = None) -> Plan:
        """The plan for the present state, or for a part of it."""
        return make_plan(self.snapshot, self.limits, scope, lingers=self.lingering.__contains__)

    @property
    def snapshot(self) -> Snapshot:
        return snapshot_of(
            dict(self.nodes), dict(self.brokers), dict(self.workers), dict(self.sparks), dict(self.workloads)
        )

    def do_node(self, name: str, state: str, host: str = "127.0.0.1", cpus: str = "0", memory: str = "0") -> None:
        old = self.nodes.get(name)
        node = Node(name, name, TIME, TIME, NodeState(state.upper()), f"{host}:7420", int(cpus), int(memory) << 20)
        if node.state is NodeState.EXPECTED:
            node = dataclasses.replace(node, agent_address="")
        if old is not None:
            cpus_too = {} if cpus != "0" else {"cpus": old.cpus, "memory_bytes": old.memory_bytes}
            node = dataclasses.replace(
                node, spec=old.spec, figures=old.figures, tenant_users=old.tenant_users, **cpus_too
            )
        self.nodes[name] = node

    def do_tenants(self, name: str, on: str) -> None:
        """The node's agent was started again with users for tenants, or without."""
        self.nodes[name] = dataclasses.replace(self.nodes[name], tenant_users=on == "on")

    def do_label(self, name: str, **labels: str) -> None:
        self._node_spec(name, labels=labels)

    def do_capacity(self, name: str, cpus: str = "0", memory: str = "0") -> None:
        self._node_spec(name, capacity=ResourceLimits(float(cpus), int(memory) << 20))

    def do_cordon(self, name: str) -> None:
        self._node_spec(name, cordoned=True)

    def do_drain(self, name: str) -> None:
        self._node_spec(name, cordoned=True, draining=True)

    def do_uncordon(self, name: str) -> None:
        self._node_spec(name, cordoned=False, draining=False)

    def do_figures(self, name: str, cpus: str, free: str) -> None:
        figures = NodeFigures(float(cpus), int(free) << 20, 0, 0.0)
        self.nodes[name] = dataclasses.replace(self.nodes[name], figures=figures)

    def _node_spec(self, name: str, **changes: object) -> None:
        node = self.nodes[name]
        self.nodes[name] = dataclasses.replace(node, spec=dataclasses.replace(node.spec, **changes))

    def do_pinned(self, name: str) -> list[str]:
        return [", ".join(pinned_workloads(self.snapshot, name)) or "nothing"]

    def do_managed(self, name: str, nodes: str, controllers: str = "0", port: str = "0", retention: str = "") -> None:
        properties = {"log.retention.hours": retention} if retention else {}
        spec = ManagedBrokers(tuple(nodes.split(",")), properties, int(controllers), int(port))
        broker_cluster = BrokerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.RUNNING, spec, "kafka-id")
        if name in self.brokers:
            old = self.brokers[name]
            broker_cluster = dataclasses.replace(old, spec=spec, generation=old.generation + 1)
        self.brokers[name] = broker_cluster

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

    def do_spark(self, name: str, **fields: str) -> None:
        """Creates a Spark cluster, or changes its spec."""
        old = self.sparks.get(name)
        spec = SparkClusterSpec("spark://m:7077") if old is None else old.spec
        for key, value in fields.items():
            changed = {"drivers": int, "nodes": lambda v: tuple(filter(None, v.split(",")))}.get(key, str)(value)
            spec = dataclasses.replace(spec, **{key: changed})
        made = SparkCluster(name, name, TIME, TIME, 1, "", spec)
        self.sparks[name] = made if old is None else dataclasses.replace(old, spec=spec, generation=old.generation + 1)

    def do_despark(self, name: str) -> None:
        """Deletes a Spark cluster."""
        del self.sparks[name]

    def do_links(self) -> list[str]:
        """The addresses of the Spark services of workers that shall run."""
        running = [(n, w.spec) for n, w in sorted(self.workloads.items()) if w.goal is Goal.RUNNING]
        specs = [(name, spec) for name, spec in running if isinstance(spec, WorkerSpec)]
        return [f"{name}: {spec.spark_cluster or 'node'} {spec.spark_address}" for name, spec in specs]

    def do_drivers(self, name: str) -> list[str]:
        """The status of a Spark cluster, and the settings of its drivers."""
        seen = spark_cluster_status(self.sparks[name], self.snapshot)
        lines = [f"spark {name}: {seen.state} {seen.reason} {seen.message}".rstrip()]
        drivers = [(d, d.spec) for d in self.snapshot.workloads_in(WorkloadKind.SPARK, name)]
        return lines + [
            f"  {d.name} {d.node} {spec.master} {spec.port}/{spec.slot_port} {d.goal}"
            for d, spec in drivers if isinstance(spec, SparkSpec)
        ]  # fmt: skip

    def do_workers(self, name: str, on: str, **fields: str) -> None:
        spec = self._spec(WorkerClusterSpec(on), fields)
        self.workers[name] = WorkerCluster(name, name, TIME, TIME, 1, "", ClusterGoal.STOPPED, spec)

    def do_update(self, name: str, **fields: str) -> None:
        cluster = dataclasses.replace(self.workers[name], status=self.worker_status(name))
        self.workers[name] = updated(cluster, self._spec(cluster.spec, fields))

    def do_restart(self, name: str) -> None:
        self.workers[name] = restarted(self.workers[name])

    @staticmethod
    def _spec(spec: WorkerClusterSpec, fields: dict[str, str]) -> WorkerClusterSpec:
        """A spec's fields from words; `cpus` and `memory` are its limits, `select` its selector, others properties."""
        for key, value in fields.items():
            match key:
                case "nodes":
                    spec = dataclasses.replace(spec, nodes=tuple(value.split(",")), count=0)
                case "count":
                    spec = dataclasses.replace(spec, nodes=(), count=int(value))
                case "reserved":
                    spec = dataclasses.replace(spec, reserved_ports=tuple(int(p) for p in value.split(",") if p))
                case "port" | "metrics_port" | "admin_port":
                    spec = dataclasses.replace(spec, **{key: int(value)})
                case "spark":
                    spec = dataclasses.replace(spec, spark_cluster=value)
                case "tenant":
                    spec = dataclasses.replace(spec, tenant=value)
                case "https":
                    spec = dataclasses.replace(spec, https=value == "true")
                case "cpus":
                    spec = dataclasses.replace(spec, limits=dataclasses.replace(spec.limits, cpus=float(value)))
                case "memory":
                    limits = dataclasses.replace(spec.limits, memory_bytes=int(value) << 20)
                    spec = dataclasses.replace(spec, limits=limits)
                case "select":
                    spec = dataclasses.replace(spec, node_selector=dict(w.split(":") for w in value.split(",") if w))
                case "engine":
                    spec = dataclasses.replace(spec, engine=WorkerEngine(value))
                case "plugins" | "libraries":
                    refs = tuple(PluginRef(*word.split(":"), sha256=word) for word in value.split(",") if word)
                    spec = dataclasses.replace(spec, **{key: refs})
                case "description":
                    spec = dataclasses.replace(
                        spec, annotations=dataclasses.replace(spec.annotations, description=value)
                    )
                case _:
                    spec = dataclasses.replace(spec, properties={**spec.properties, key: value})
        return spec

    def do_start(self, what: str, name: str) -> None:
        self._goal(what, name, "start")

    def do_stop(self, what: str, name: str) -> None:
        self._goal(what, name, "stop")

    def do_kill(self, name: str) -> None:
        self._goal("workers", name, "stop")
        self.workers[name] = dataclasses.replace(self.workers[name], force=True)

    def do_delete(self, what: str, name: str) -> None:
        self._goal(what, name, "delete")

    def _goal(self, what: str, name: str, verb: str) -> None:
        if what == "brokers":
            self.brokers[name] = dataclasses.replace(self.brokers[name], goal=GOALS[verb])
        else:
            force = self.workers[name].force and verb != "start"
            self.workers[name] = dataclasses.replace(self.workers[name], goal=GOALS[verb], force=force)

    def do_report(self, name: str, state: str, reason: str = "", restarts: str = "", message: str = "") -> None:
        workload = self.workloads[name]
        before = 0 if workload.status is None else workload.status.restarts
        status = WorkloadStatus(
            ProcessState(state), workload.generation, reason=reason, message=message or reason.lower(),
            restarts=int(restarts or before),
        )  # fmt: skip
        ran = workload.has_run or status.state is ProcessState.RUNNING
        self.workloads[name] = dataclasses.replace(workload, status=status, has_run=ran)

    def do_linger(self, *nodes: str) -> None:
        """Marks the Spark services of these nodes as idle for less than their grace."""
        self.lingering = set(map(spark_name, nodes))

    def do_obey(self, *names: str) -> None:
        """Agents reach the goal of these workloads, or of all."""
        for workload in list(self.workloads.values()):
            if (not names or workload.name in names) and self.nodes[workload.node].state is NodeState.ONLINE:
                self.do_report(workload.name, OBEYED[workload.goal])

    def do_plan(self) -> list[str]:
        plan = self.plan()
        said = self.apply(plan)
        again = self.plan()
        assert again.is_empty, f"planning again is not empty: {again}"
        return said or ["nothing to do"]

    def do_show(self) -> list[str]:
        lines = []
        for name, brokers in sorted(self.brokers.items()):
            status = broker_cluster_status(brokers, self.snapshot)
            lines.append(f"brokers {name}: {status.state} [{status.bootstrap_servers}] {status.message}".rstrip())
        for name, workers in sorted(self.workers.items()):
            seen = worker_cluster_status(workers, self.snapshot)
            ready = f"{seen.ready_workers}/{workers.wanted_workers}"
            lines.append(f"workers {name}: {seen.state} {ready} {seen.message}".rstrip())
            if seen.rollout is not None:
                lines.append(f"  {self._rollout(seen.rollout)}".rstrip())
        return lines + [self._line("  ", w) for _, w in sorted(self.workloads.items())]

    def do_properties(self, name: str) -> list[str]:
        """The workers' own properties."""
        workers = self.snapshot.workloads_in(WorkloadKind.WORKER, name)
        own = self.workers[name].spec.properties
        specs = [(w, w.spec) for w in workers if isinstance(w.spec, WorkerSpec)]
        return [f"{w.name} on {w.node}: " + ", ".join(f"{k}={s.properties.get(k)}" for k in own) for w, s in specs]

    def do_plugins(self, name: str) -> list[str]:
        """The plugins and libraries that each worker loads."""
        workers = self.snapshot.workloads_in(WorkloadKind.WORKER, name)
        specs = [(w, w.spec) for w in workers if isinstance(w.spec, WorkerSpec)]
        return [f"{w.name}: {', '.join(map(str, s.plugins + s.libraries)) or 'none'}" for w, s in specs]

    def do_users(self, plugin: str) -> list[str]:
        """The clusters that keep a plugin from deletion."""
        snapshot = self.snapshot
        for cluster in self.workers.values():
            snapshot.put(dataclasses.replace(cluster, status=worker_cluster_status(cluster, snapshot)))
        return [", ".join(snapshot.users_of_plugin(plugin)) or "none"]

    def do_rollout(self, name: str) -> list[str]:
        rollout = self.worker_status(name).rollout
        return ["none" if rollout is None else self._rollout(rollout)]

    def do_settle(self) -> list[str]:
        """Plans and applies until nothing is left to do; returns the changes, with the reasons."""
        said: list[str] = []
        for _ in range(50):
            plan = self.plan()
            if plan.is_empty:
                self.do_obey()
                plan = self.plan()
            if plan.is_empty:
                return said or ["nothing to do"]
            said += self.why(plan)
            self.apply(plan)
            self.do_obey()
        raise AssertionError("it does not settle")

    @staticmethod
    def _rollout(rollout: Rollout) -> str:
        said = f"rollout {rollout.state} {rollout.updated_workers}/{rollout.workers} {rollout.worker} {rollout.message}"
        return " ".join(said.split())

    @staticmethod
    def why(plan: Plan) -> list[str]:
        """The changes of a plan in words."""
        lines = []
        for change in plan.changes:
            where = f"from {change.from_node} to {change.node}" if change.from_node else f"on {change.node}"
            lines.append(f"{change.action} {change.workload} {where}: {change.reason}")
        notes = {**plan.broker_notes, **plan.spark_notes, **plan.worker_notes}
        return lines + [f"! {name}: {note}".rstrip() for name, note in notes.items()]

    def do_why(self) -> list[str]:
        """Plans; returns the changes and their reasons."""
        plan = self.plan()
        said = self.why(plan)
        self.apply(plan)
        again = self.plan()
        assert again.is_empty, f"planning again is not empty: {again}"
        return said or ["nothing to do"]

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
        for name, back in plan.went_back.items():
            cluster = self.workers[name]
            history = dataclasses.replace(cluster.plugin_history, went_back=back)
            self.workers[name] = dataclasses.replace(cluster, plugin_history=history)
            said.append(f"! workers {name} go back: {back.message}")
        for name, note in plan.broker_notes.items():
            self.brokers[name] = dataclasses.replace(self.brokers[name], note=note)
            said.append(f"! brokers {name}: {note}")
        for name, note in plan.spark_notes.items():
            self.sparks[name] = dataclasses.replace(self.sparks[name], note=note)
            said.append(f"! spark {name}: {note}")
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
