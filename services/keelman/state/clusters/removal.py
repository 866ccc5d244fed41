"""Refuses to remove a managed cluster's broker if that would lose anything, before the change is written."""

from __future__ import annotations

from collections.abc import Sequence

from keelman.kafka.cluster_state import Partition, partitions_of
from keelman.model.cluster import BrokerCluster, BrokerClusterSpec, ClusterGoal, ManagedBrokers
from keelman.model.errors import Conflict, FailedPrecondition
from keelman.model.rules.names import MAX_NAMED
from keelman.model.workload import BrokerSpec, ProcessState, Workload
from keelman.state.planning.kept_brokers import brokers_of
from keelman.state.resources.snapshot import Snapshot

ASK_SECONDS = 10.0


async def check_removal(snapshot: Snapshot, cluster: BrokerCluster, spec: BrokerClusterSpec) -> frozenset[str]:
    """Returns the names of the brokers that the new spec removes: nothing is on them.

    Raises FailedPrecondition for a controller (CONTROLLER), for brokers with replicas (WOULD_LOSE_PARTITIONS) and if
    the brokers cannot be queried (NOT_RUNNING); Unavailable if they do not answer.
    """
    removed = removed_brokers(snapshot, cluster, spec)
    with_data = [b for b in removed if b.has_run]
    if with_data:
        if cluster.goal is not ClusterGoal.RUNNING:
            raise FailedPrecondition(
                f"spec.managed.nodes: the data on {with_data[0].name} is unknown while broker cluster "
                f"{cluster.name!r} does not run: start it first",
                reason="NOT_RUNNING",
            )
        running = [b for b in brokers_of(snapshot, cluster) if b.is_in(ProcessState.RUNNING)] or with_data
        servers = ",".join(b.address for b in running)
        check_nothing_lost(with_data, await partitions_of(cluster.asked_at(servers), seconds=ASK_SECONDS))
    return frozenset(b.name for b in removed)


def removed_brokers(snapshot: Snapshot, cluster: BrokerCluster, spec: BrokerClusterSpec) -> list[Workload]:
    """Returns the brokers whose nodes the new spec no longer names. Raises FailedPrecondition (CONTROLLER)."""
    if not isinstance(spec, ManagedBrokers):
        return []
    removed = [b for b in brokers_of(snapshot, cluster) if b.node not in spec.nodes]
    for broker in removed:
        if isinstance(broker.spec, BrokerSpec) and broker.spec.controller:
            raise FailedPrecondition(
                f"spec.managed.nodes: node {broker.node} carries {broker.name}, a controller of broker cluster "
                f"{cluster.name!r}: controllers cannot be removed",
                reason="CONTROLLER",
                metadata={"node": broker.node, "broker": broker.name},
            )
    return removed


def check_same_removed(
    snapshot: Snapshot, cluster: BrokerCluster, spec: BrokerClusterSpec, checked: frozenset[str]
) -> None:
    """Raises Conflict when, in the transaction that writes it, the spec removes other brokers than were checked."""
    if not checked.issuperset(b.name for b in removed_brokers(snapshot, cluster, spec)):
        raise Conflict(
            f"broker cluster {cluster.name!r} was changed meanwhile: read it again, then decide", reason="CHANGED"
        )


def check_nothing_lost(removed: Sequence[Workload], partitions: Sequence[Partition]) -> None:
    """Raises FailedPrecondition (WOULD_LOSE_PARTITIONS) naming the partitions with replicas on these brokers."""
    ids = {b.spec.broker_id for b in removed if isinstance(b.spec, BrokerSpec)}
    lost = [p.name for p in partitions if ids & set(p.replicas)]
    if not lost:
        return
    more = f" and {len(lost) - MAX_NAMED} more" if len(lost) > MAX_NAMED else ""
    nodes = ", ".join(b.node for b in removed)
    raise FailedPrecondition(
        f"spec.managed.nodes: without {nodes} replicas of {len(lost)} partitions would be lost "
        f"({', '.join(lost[:MAX_NAMED])}{more}): move them to other brokers first",
        reason="WOULD_LOSE_PARTITIONS",
        metadata={"nodes": nodes, "count": str(len(lost)), "partitions": ", ".join(lost[:MAX_NAMED])},
    )
