"""Creates, changes, starts, stops and deletes worker clusters, each in its caller's transaction."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable

from keelman.model.autoscale import Scaling
from keelman.model.cluster import ClusterGoal, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.rules.field_checks import MAX_WORKERS
from keelman.model.rules.names import MAX_NAMED
from keelman.state.clusters.goals import check_not_deleted, saved, with_goal
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.clusters.worker_checks import check, check_change
from keelman.state.planning.rollout import restarted, updated
from keelman.state.plugins.sets import check_engine, resolved
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.snapshot import DEDICATED_CONNECTOR
from keelman.state.resources.transaction import Transaction


def create(tx: Transaction, name: str, spec: WorkerClusterSpec) -> WorkerCluster:
    """Stores a new worker cluster, stopped."""
    check_free("worker cluster", name, tx.snapshot.worker_clusters)
    spec = resolved(spec, tx.snapshot)
    check(name, spec, tx.snapshot)
    cluster = WorkerCluster(name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", goal=ClusterGoal.STOPPED, spec=spec)
    return saved(tx, cluster)


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[WorkerClusterSpec], WorkerClusterSpec]
) -> WorkerCluster:
    """Changes the spec of the worker cluster by `change`."""
    cluster = present(tx, WorkerCluster, name, etag)
    check_not_deleted(cluster)
    spec = resolved(_with_kept_credentials(change(cluster.spec), cluster.spec), tx.snapshot)
    if spec == cluster.spec:
        return cluster
    check_change(cluster, spec)
    check_engine(cluster, spec)
    check(name, spec, tx.snapshot)
    return saved(tx, updated(cluster, spec))


def _with_kept_credentials(spec: WorkerClusterSpec, old: WorkerClusterSpec) -> WorkerClusterSpec:
    """Returns a changed spec with the certificate that the brokers know, if they are the same brokers, and that of its
    links to a Spark cluster, if it names one."""
    return dataclasses.replace(
        spec,
        credentials=old.credentials if spec.broker_cluster == old.broker_cluster else {},
        spark_client_properties=old.spark_client_properties if spec.spark_cluster else {},
    )


def scale(tx: Transaction, name: str, etag: str, workers: int) -> WorkerCluster:
    """Sets the number of workers: the count, or the number from which autoscaling continues."""
    cluster = present(tx, WorkerCluster, name, etag)
    check_not_deleted(cluster)
    autoscale = cluster.spec.autoscale
    if cluster.spec.nodes:
        text = f"worker cluster {name!r} has a worker on each of its nodes: place it by count or autoscale"
        raise FailedPrecondition(text, reason="FIXED_NODES")
    least, most = (1, MAX_WORKERS) if autoscale is None else (autoscale.min_workers, autoscale.max_workers)
    if not least <= workers <= most:
        raise InvalidArgument.of("workers", workers, f"{least} to {most}")
    if workers == cluster.wanted_workers:
        return cluster
    if autoscale is None:
        return update(tx, name, etag, lambda spec: dataclasses.replace(spec, count=workers))
    if (operation := tx.snapshot.unfinished_operation(cluster.NOUN, name)) is not None:
        text = f"operation {operation.name} scales worker cluster {name!r}: wait until it has ended"
        raise FailedPrecondition(text, reason="OPERATION_UNDER_WAY", metadata={"operation": operation.name})
    step = Scaling(workers, cluster.wanted_workers, tx.now, "set by a caller")
    return saved(tx, dataclasses.replace(cluster, scaling=step, generation=cluster.generation + 1, note=""))


def restart(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Begins to replace the processes of all workers, one after the other."""
    cluster = present(tx, WorkerCluster, name, etag)
    check_not_deleted(cluster)
    if cluster.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(f"worker cluster {name!r} is {cluster.status.state}: start it", reason="NOT_RUNNING")
    return saved(tx, restarted(cluster))


def delete(tx: Transaction, name: str, etag: str, *, only_unused: bool = False) -> WorkerCluster:
    """Begins to delete a worker cluster; with `only_unused` only if no definition names it. Its topics stay."""
    cluster = present(tx, WorkerCluster, name, etag)
    if only_unused and (users := ", ".join(sorted(tx.snapshot.definitions_on(name))[:MAX_NAMED])):
        text = f"worker cluster {name!r} is used by connector definitions {users}: delete these first"
        raise FailedPrecondition(text, reason="IN_USE", metadata={"connector_definitions": users})
    return with_goal(tx, cluster, ClusterGoal.DELETED)


def start(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Sets the goal that the workers run."""
    cluster = present(tx, WorkerCluster, name, etag)
    check_not_deleted(cluster)
    brokers = tx.snapshot.broker_clusters[cluster.spec.broker_cluster]
    if brokers.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(
            f"broker cluster {brokers.name!r} of worker cluster {name!r} is {brokers.status.state}: start it first",
            reason="BROKERS_STOPPED",
            metadata={"broker_cluster": brokers.name},
        )
    if cluster.goal is not ClusterGoal.RUNNING:
        check_own_names(name, cluster.spec, tx.snapshot)  # now two may turn out as one Kafka
    return with_goal(tx, cluster, ClusterGoal.RUNNING)


def stop(tx: Transaction, name: str, etag: str, *, force: bool = False) -> WorkerCluster:
    """Sets the goal that the workers stop, or with `force` that they are killed."""
    cluster = present(tx, WorkerCluster, name, etag)
    check_not_deleted(cluster)
    return with_goal(tx, cluster, ClusterGoal.STOPPED, force=force)


def own_name(tx: Transaction, name: str) -> str:
    """Returns the name of a cluster that users may change directly. Raises FailedPrecondition (OWNED) for that of a
    dedicated connector, which is changed and deleted with the connector."""
    if name in tx.snapshot.dedicated_connectors and name in tx.snapshot.worker_clusters:
        raise FailedPrecondition(
            f"worker cluster {name!r} is that of dedicated connector {name!r}: change or delete that",
            reason="OWNED",
            metadata={"kind": DEDICATED_CONNECTOR, "name": name},
        )
    return name
