"""Checks that no two clusters share ports on hosts, or an origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from keelman.model.cluster import ManagedBrokers, WorkerClusterSpec
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.workload import Workload, WorkloadKind
from keelman.state.planning.places import port_owners
from keelman.state.resources.checks import origin_facts
from keelman.state.resources.origins import WORDS, is_past
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, SPARK_CLUSTER, WORKER_CLUSTER, Snapshot

_Holder: TypeAlias = tuple[str, str]
"""Noun and name."""
_KINDS = {
    WorkloadKind.BROKER: BROKER_CLUSTER,
    WorkloadKind.WORKER: WORKER_CLUSTER,
    WorkloadKind.SPARK: SPARK_CLUSTER,
}


def check_ports_free(name: str, spec: WorkerClusterSpec, snapshot: Snapshot) -> None:
    """Raises InvalidArgument for a fixed port of a cluster with two nodes on one host; FailedPrecondition for a port
    that another cluster's spec names, on any nodes, or that is taken on the workers' nodes."""
    named = [("spec.port", spec.port), ("spec.metrics_port", spec.metrics_port), ("spec.admin_port", spec.admin_port)]
    named += [(f"spec.reserved_ports[{number}]", port) for number, port in enumerate(spec.reserved_ports)]
    hosts = [snapshot.nodes[node].host for node in spec.nodes]
    shared = next((host for host in hosts if host and hosts.count(host) > 1), None)
    for field, port in named:
        if port and shared is not None:
            raise InvalidArgument.of(field, port, f"none, as nodes of the cluster share the host {shared}")
        if port:
            _check_port((field, port), (WORKER_CLUSTER, name), spec.nodes, snapshot)


def check_broker_ports_free(name: str, spec: ManagedBrokers, snapshot: Snapshot) -> None:
    """Raises FailedPrecondition for a port of brokers that something else has or will have."""
    for field, port in (("spec.managed.port", spec.port), ("spec.managed.metrics_port", spec.metrics_port)):
        if port:
            _check_port((field, port), (BROKER_CLUSTER, name), spec.nodes, snapshot)


def _origin_of(holder: _Holder, snapshot: Snapshot) -> dict[str, str]:
    noun, name = holder
    if noun == NODE:
        return {}
    cluster = snapshot.resources(noun).get(name)  # a deleted Spark cluster's drivers end after it
    return {} if cluster is None else origin_facts(cluster.spec.annotations.origin)


def _check_port(field_and_port: tuple[str, int], mine: _Holder, nodes: Sequence[str], snapshot: Snapshot) -> None:
    field, port = field_and_port
    holders = [holder for holder in snapshot.naming(port) if holder != mine and not is_past(*holder, snapshot)]
    for kind, holder in holders or list(_owners(port, mine, nodes, snapshot)):
        raise FailedPrecondition(
            f"{field}: {port} is a port of {WORDS[kind]} {holder!r}: give another",
            reason="PORT_IN_USE",
            metadata={"port": str(port), "kind": kind, "name": holder} | _origin_of((kind, holder), snapshot),
        )


def _holder(owner: Workload) -> _Holder:
    """Returns the cluster of a workload, or the node of a node's Spark service."""
    if owner.kind is WorkloadKind.SPARK and not owner.cluster:
        return NODE, owner.node
    return _KINDS[owner.kind], owner.cluster


def _owners(port: int, mine: _Holder, nodes: Sequence[str], snapshot: Snapshot) -> Iterator[_Holder]:
    """Yields the owners of the port on the given nodes; without given nodes, none if the port is free on some node."""
    holders: dict[str, list[_Holder]] = {}
    for node in nodes or [n.name for n in snapshot.nodes.values() if n.takes_new]:
        owners = [snapshot.workloads[owner] for owner in port_owners(snapshot, node, port)]
        holders[node] = [_holder(owner) for owner in owners]
        holders[node] = [holder for holder in holders[node] if holder != mine and not is_past(*holder, snapshot)]
        if not nodes and not holders[node]:
            return
    for owned in holders.values():
        yield from owned
