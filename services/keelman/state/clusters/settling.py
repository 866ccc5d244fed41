"""Derives the statuses of clusters again at the end of each transaction that touched them."""

from __future__ import annotations

from keelman.model.workload import WorkloadKind
from keelman.state.clusters.kafka_names import rivals_of, users_of_kafka
from keelman.state.clusters.status import with_status
from keelman.state.resources.snapshot import BROKER_CLUSTER, NODE, SPARK_CLUSTER, WORKER_CLUSTER, WORKLOAD
from keelman.state.resources.transaction import Transaction

CLUSTERS = {WorkloadKind.BROKER: BROKER_CLUSTER, WorkloadKind.WORKER: WORKER_CLUSTER}


def settle(tx: Transaction) -> None:
    """Derives the statuses of the clusters that a transaction touched, and stores those that changed."""
    snapshot = tx.snapshot
    brokers, workers = _touched(tx)
    for name in sorted(brokers):
        cluster = snapshot.broker_clusters.get(name)
        if cluster is not None and (settled := with_status(cluster, snapshot, tx.now)) != cluster:
            tx.put(settled)
    for name in sorted(workers):
        users = snapshot.worker_clusters.get(name)
        if users is not None and (seen := with_status(users, snapshot, tx.now)) != users:
            tx.put(seen)


def _touched(tx: Transaction) -> tuple[set[str], set[str]]:
    """Returns the broker clusters and worker clusters whose status may change by the transaction's writes."""
    changed = {kind: set(tx.snapshot.changes(noun)) for kind, noun in CLUSTERS.items()}
    nodes, sparks = set(tx.snapshot.changes(NODE)), set(tx.snapshot.changes(SPARK_CLUSTER))
    for name, workload in tx.snapshot.changes(WORKLOAD).items():
        for state in (tx.before.workloads.get(name), workload):
            if state is not None and state.kind is WorkloadKind.SPARK:
                nodes.add(state.node)
                sparks |= {state.cluster} - {""}
            elif state is not None:
                changed[state.kind].add(state.cluster)
    for node in nodes:
        for workload in tx.snapshot.workloads_on(node):
            if workload.kind in changed:
                changed[workload.kind].add(workload.cluster)
            elif workload.cluster:
                sparks.add(workload.cluster)
    for spark in sparks:
        changed[WorkloadKind.WORKER] |= {worker.cluster for worker in tx.snapshot.linked_to(spark)}
    return changed[WorkloadKind.BROKER], changed[WorkloadKind.WORKER] | _sharing_names(tx)


def _sharing_names(tx: Transaction) -> set[str]:
    """Returns the worker clusters that may share a name in Kafka with another, or no longer do, by the transaction's
    writes."""
    names: set[str] = set()
    for name, brokers in tx.snapshot.changes(BROKER_CLUSTER).items():
        former_cluster = tx.before.broker_clusters.get(name)
        if (
            former_cluster is not None
            and brokers is not None
            and former_cluster.kafka_cluster_id != brokers.kafka_cluster_id
        ):
            names.update(user.name for some in (tx.before, tx.snapshot) for user in users_of_kafka(name, some))
    for name, cluster in tx.snapshot.changes(WORKER_CLUSTER).items():
        former = tx.before.worker_clusters.get(name)
        if former is not None and (cluster is None or (cluster.goal, cluster.spec) != (former.goal, former.spec)):
            names.update(rival.name for rival in rivals_of(name, former.spec, tx.before))
    return names
