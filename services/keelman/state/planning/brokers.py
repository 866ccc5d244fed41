"""Plans the brokers of managed clusters. Pure."""

from __future__ import annotations

from keelman.model.cluster import BrokerCluster, ClusterGoal, ExternalBrokers, ManagedBrokers
from keelman.model.workload import (
    BrokerSpec,
    Goal,
    WorkloadKind,
    broker_name,
    joined_address,
)
from keelman.state.planning.draft import Draft, NoPort, ports_taken
from keelman.state.properties import VOTERS


def plan_brokers(draft: Draft, cluster: BrokerCluster) -> bool:
    """Plans one broker cluster; True when it is to be deleted and nothing of it is left."""
    present = draft.snapshot.workloads_in(WorkloadKind.BROKER, cluster.name)
    if cluster.goal is ClusterGoal.DELETED:
        for workload in present:
            draft.remove(workload)
        return not any(w.name in draft.workloads for w in present)
    if isinstance(cluster.spec, ExternalBrokers):
        return False
    if cluster.goal is ClusterGoal.STOPPED:
        for workload in present:
            draft.set_goal(workload, Goal.STOPPED)
        return False
    try:
        specs = _broker_specs(draft, cluster, cluster.spec)
    except NoPort as problem:
        draft.broker_notes[cluster.name] = str(problem)
        return False
    for number, (node, spec) in enumerate(zip(cluster.spec.nodes, specs, strict=True)):
        draft.want(broker_name(cluster.name, number), node, Goal.RUNNING, spec)
    return False


def _broker_specs(draft: Draft, cluster: BrokerCluster, wanted: ManagedBrokers) -> list[BrokerSpec]:
    """The brokers of a cluster. All ports come first: each broker must know every controller of its quorum."""
    places = []
    given: dict[str, set[int]] = {}
    for number, node in enumerate(wanted.nodes):
        old = draft.workloads.get(broker_name(cluster.name, number))
        host = draft.node(node).host
        if old is not None and isinstance(old.spec, BrokerSpec) and (old.has_run or not ports_taken(old)):
            pair = [old.spec.port, old.spec.controller_port]
        else:
            tried = () if old is None else (*old.tried_ports, *ports_taken(old))
            pair = draft.ports(node, draft.limits.broker_ports, 2, (*tried, *given.get(host, ())))
        given.setdefault(host, set()).update(pair)
        places.append((host, pair[0], pair[1]))
    properties = dict(wanted.properties)
    if len(places) > 1:
        properties[VOTERS] = ",".join(f"{i}@{joined_address(h, c)}" for i, (h, _, c) in enumerate(places))
    return [
        BrokerSpec(cluster.name, cluster.kafka_cluster_id, i, host, port, controller, properties)
        for i, (host, port, controller) in enumerate(places)
    ]
