"""Makes the spec of one worker from its cluster's spec and its place, and names how two of these differ. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from keelman.model.cluster import WorkerCluster, WorkerEngine
from keelman.model.log_delivery import targets_of
from keelman.model.plugins.plugin_set import PluginRef
from keelman.model.workload import Goal, PluginFile, ProcessState, ResourceLimits, Trial, WorkerSpec, Workload
from keelman.state.kafka.listeners import ADMIN_LISTENERS, LISTENERS, METRICS_LISTENERS, listeners
from keelman.state.kafka.properties import REPLICATION, worker_properties
from keelman.state.planning.draft import Draft, NoPort, ports_taken
from keelman.state.planning.drivers import addresses_of, still_linked
from keelman.state.planning.places import port_owners
from keelman.state.planning.sparks import spark_address, spark_on, still_good

BOOTSTRAP = "bootstrap.servers"


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerSpecs:
    """The spec that a worker gets, and the spec that it runs with until its turn comes."""

    spec: WorkerSpec
    limits: ResourceLimits
    until_then: WorkerSpec
    limits_until_then: ResourceLimits

    @property
    def is_change(self) -> bool:
        """True when the process runs with another spec or other limits now."""
        return (self.spec, self.limits) != (self.until_then, self.limits_until_then)

    @property
    def reason(self) -> str:
        """The changes, for people."""
        reasons = list(differences(self.until_then, self.spec))
        if self.limits != self.limits_until_then:
            reasons.append("its limits changed")
        return "; ".join(reasons)


class SpecMaker:
    """Makes the specs of one cluster's workers."""

    def __init__(
        self, draft: Draft, cluster: WorkerCluster, bootstrap: str, brokers: int, client_properties: Mapping[str, str]
    ) -> None:
        """`client_properties`: by which the brokers know it."""
        self._draft = draft
        self._cluster = cluster
        self._reports, _ = draft.bootstrap_of(draft.limits.events_broker_cluster)
        self._reports_client = dict(draft.reports_client_properties)
        self._link_properties = dict(cluster.spec.spark_client_properties) if cluster.spec.spark_cluster else {}
        self._properties = worker_properties(
            cluster, bootstrap_servers=bootstrap, brokers=brokers, listener="", client_properties=client_properties
        )
        limits = draft.limits
        if cluster.spec.engine is WorkerEngine.KEELMAN:
            self._properties |= limits.policy_rules
        self._log_targets = targets_of(cluster.spec.log_delivery, cluster.name, limits.buckets, limits.buckets_region)
        chosen = cluster.plugin_set
        self._plugins, self._libraries = self._files(chosen.plugins), self._files(chosen.libraries)

    def _files(self, refs: tuple[PluginRef, ...]) -> tuple[PluginFile, ...]:
        """Returns the files of plugins. A plugin that no longer exists gets size 0: its agent will report it
        missing."""
        files = []
        for ref in refs:
            plugin = self._draft.snapshot.plugins.get(ref.key)
            size, name = (0, "") if plugin is None else (plugin.size_bytes, plugin.file_name)
            files.append(PluginFile(ref.name, ref.version, ref.sha256, size, name))
        return tuple(files)

    def wanted(self, old: Workload | None, name: str, node: str) -> WorkerSpecs:
        """Returns the specs of the worker of that name on a node; `old` is its present workload. Raises NoPort."""
        spec_now, host = self._cluster.spec, self._draft.node(node).host
        port = self._port(old, name, node)
        java = spec_now.engine is WorkerEngine.KAFKA_CONNECT
        tenant = self._draft.tenant_on(node, self._cluster)
        had = old.spec if old is not None and isinstance(old.spec, WorkerSpec) else None
        spark, until_then_spark = "", ""
        if not java:
            spark = until_then_spark = self._spark_address(old, node, tenant, spec_now.spark_cluster)
        if had is not None and had.spark_cluster != spec_now.spark_cluster and not had.kafka_connect:
            until_then_spark = self._spark_address(old, node, tenant, had.spark_cluster) or had.spark_address
        properties, reports = dict(self._properties), self._reports
        if had is not None and old is not None and old.node == node and old.goal is Goal.RUNNING:
            properties |= self._kept(had)
            reports = still_good(had.reports_bootstrap_servers, reports)
        properties |= listeners(
            host, port, admin_port=spec_now.admin_port, metrics_port=spec_now.metrics_port, https=spec_now.https
        )
        spec = WorkerSpec(
            self._cluster.name, host, port, dict(sorted(properties.items())), spark, reports,
            self._reports_client,
            metrics_port=spec_now.metrics_port, admin_port=spec_now.admin_port, reserved_ports=spec_now.reserved_ports,
            https=spec_now.https, restart=self._cluster.restart,
            plugins=self._plugins, libraries=self._libraries,
            kafka_connect=java, routes=dict(spec_now.routes), log_targets=self._log_targets, tenant=tenant,
            spark_cluster=spec_now.spark_cluster, spark_client_properties=self._link_properties,
        )  # fmt: skip
        if old is None or had is None:
            return WorkerSpecs(spec, spec_now.limits, spec, spec_now.limits)
        if old.node == node and spec_now.port not in (0, had.port):
            port = had.port  # it does not have the fixed one yet
        merged = dict(had.properties) | listeners(
            host, port, admin_port=had.admin_port, metrics_port=had.metrics_port, https=had.https
        )
        until_then = dataclasses.replace(
            had, host=host, port=port, properties=dict(sorted(merged.items())),
            spark_address=until_then_spark, reserved_ports=spec_now.reserved_ports, log_targets=self._log_targets,
            tenant=tenant,
        )  # fmt: skip
        return WorkerSpecs(spec, spec_now.limits, until_then, old.limits)

    def _spark_address(self, old: Workload | None, node: str, tenant: str, spark_cluster: str) -> str:
        """Returns the address of the node's Spark service, or those of a Spark cluster's drivers: while a worker runs,
        its present ones as long as one of them is good. Raises NoPort."""
        if not spark_cluster:
            return spark_address(spark_on(self._draft, node, tenant))
        addresses = addresses_of(self._draft, spark_cluster)
        stays = old is not None and old.node == node and old.goal is Goal.RUNNING and old.has_run
        if stays and old is not None and isinstance(old.spec, WorkerSpec) and old.spec.spark_cluster == spark_cluster:
            return still_linked(old.spec.spark_address, addresses)
        return addresses

    def _kept(self, had: WorkerSpec) -> dict[str, str]:
        """Returns properties that stay when brokers change: their addresses while all of them are still good, and the
        replication factors of topics, which exist by now."""
        properties = self._cluster.spec.properties
        replicas = {k: had.properties[k] for k in REPLICATION if k in had.properties and k not in properties}
        replicas[BOOTSTRAP] = still_good(had.properties.get(BOOTSTRAP, ""), self._properties[BOOTSTRAP])
        return replicas

    def check_ports(self, old: Workload | None, name: str, node: str) -> None:
        """Raises NoPort when a port that the cluster's spec names is taken on a node's host."""
        for port in self._cluster.spec.ports:
            if old is not None and old.node == node and port in old.ports:
                continue
            if others := [o for o in port_owners(self._draft.made, node, port) if o != name]:
                raise NoPort(f"port {port} of node {node} is held by {', '.join(others)}")

    def _port(self, old: Workload | None, name: str, node: str) -> int:
        """Returns the fixed port; else the worker's port on this node, or the next free one. Raises NoPort."""
        self.check_ports(old, name, node)
        draft, fixed, range_of_ports = self._draft, self._cluster.spec.port, self._draft.limits.worker_ports
        if fixed:
            return fixed
        if old is None or old.node != node:
            return draft.ports(node, range_of_ports)[0]
        if old.spec.port in ports_taken(old):
            return draft.ports(node, range_of_ports, tried=(*old.tried_ports, *ports_taken(old)))[0]
        return old.spec.port


def differences(old: WorkerSpec, new: WorkerSpec) -> Iterator[str]:
    """Yields the differences, for people: names of properties, never their values."""
    hidden = {LISTENERS, BOOTSTRAP}
    hidden |= {ADMIN_LISTENERS} if old.admin_port or new.admin_port else set()
    hidden |= {METRICS_LISTENERS} if old.metrics_port or new.metrics_port else set()
    mine: Mapping[str, str] = old.properties
    keys = [k for k in sorted({*mine, *new.properties}) if k not in hidden and mine.get(k) != new.properties.get(k)]
    if keys:
        yield f"properties changed: {', '.join(keys)}"
    if mine.get(BOOTSTRAP) != new.properties.get(BOOTSTRAP):
        yield "the addresses of its brokers changed"
    if (old.port, old.metrics_port, old.admin_port) != (new.port, new.metrics_port, new.admin_port):
        yield "its ports changed"
    for what, before, after in (
        ("plugins", old.plugins, new.plugins),
        ("libraries", old.libraries, new.libraries),
    ):
        if before != after:
            yield f"{what} changed: {_file_changes(before, after)}"
    if names := sorted({name for name, _ in {*old.routes.items()} ^ {*new.routes.items()}}):
        yield f"routes changed: {', '.join(names)}"
    if old.https != new.https:
        yield f"its REST API becomes {'https' if new.https else 'http'}"
    if old.host != new.host:
        yield f"its node has another address: {new.host}"
    yield from _other_spark(old, new)
    if old.restart != new.restart:
        yield "all workers of its cluster start again"
    theirs = (new.reports_bootstrap_servers, dict(new.reports_client_properties))
    if (old.reports_bootstrap_servers, dict(old.reports_client_properties)) != theirs:
        yield "the brokers of its reports changed"


def _other_spark(old: WorkerSpec, new: WorkerSpec) -> Iterator[str]:
    if old.kafka_connect != new.kafka_connect:
        yield "its engine is another one"
    elif old.tenant != new.tenant:
        yield f"it runs as the user of tenant {new.tenant}" if new.tenant else "its node has no users for tenants"
    elif old.spark_cluster != new.spark_cluster:
        yield (
            f"Spark cluster {new.spark_cluster} copies for it"
            if new.spark_cluster
            else "its node's Spark service copies"
        )
    elif old.spark_address != new.spark_address:
        yield f"its Spark {'cluster' if new.spark_cluster else 'service'} has another address"
    if dict(old.spark_client_properties) != dict(new.spark_client_properties):
        yield "its certificate for its Spark cluster changed"


def _file_changes(old: tuple[PluginFile, ...], new: tuple[PluginFile, ...]) -> str:
    """Returns which files come and go, for people; "their order" if only that changes."""
    come = [f"{file} comes" for file in new if file not in old]
    gone = [f"{file} goes" for file in old if file not in new]
    return ", ".join([*come, *gone]) or "their order"


def trial_of(cluster: WorkerCluster, old: Workload | None = None, *, is_open: bool = False) -> Trial:
    """Returns the trial of a worker that gets its cluster's present spec now; `old`: its former workload on the same
    node."""
    return Trial(cluster.process_generation, 0 if old is None else restarts_of(old), is_open)


def restarts_of(worker: Workload) -> int:
    """Returns the number of restarts to expect when the worker gets another spec: agents count on from the present
    one."""
    status = worker.status
    return 0 if status is None else status.restarts + (status.state is ProcessState.FAILED)


def tried_again(worker: Workload) -> Workload:
    """Returns the worker with a new generation, so that it starts again: restarts before that do not count against
    it."""
    trial = dataclasses.replace(worker.trial, restarts=restarts_of(worker))
    return dataclasses.replace(worker, generation=worker.generation + 1, trial=trial)
