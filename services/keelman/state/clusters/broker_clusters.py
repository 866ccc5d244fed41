"""Creates, changes, starts, stops and deletes broker clusters, each in its caller's transaction."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable

from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    new_cluster_id,
)
from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.model.rules.names import MAX_NAMED
from keelman.model.workload import WorkloadKind
from keelman.state.clusters.broker_checks import check, check_change
from keelman.state.clusters.broker_tls import with_kept_tls
from keelman.state.clusters.credentials import with_credentials
from keelman.state.clusters.goals import check_not_deleted, saved, with_goal
from keelman.state.clusters.kafka_names import check_own_names
from keelman.state.resources.checks import check_free, present
from keelman.state.resources.transaction import Transaction


def _check_managed(cluster: BrokerCluster) -> None:
    if isinstance(cluster.spec, ExternalBrokers):
        raise FailedPrecondition(
            f"broker cluster {cluster.name!r} is external: its operator starts and stops its brokers",
            reason="EXTERNAL",
        )


def create(tx: Transaction, name: str, spec: BrokerClusterSpec, *, stopped: bool = False) -> BrokerCluster:
    """Stores a new broker cluster that shall run, or `stopped`, which an external one cannot be."""
    if stopped and isinstance(spec, ExternalBrokers):
        raise InvalidArgument.of("stopped", True, "false: keelman does not start and stop external brokers")
    check_free("broker cluster", name, tx.snapshot.broker_clusters)
    spec = with_credentials(spec, tx.snapshot)
    check(spec, tx.snapshot, name)
    cluster_id = new_cluster_id() if isinstance(spec, ManagedBrokers) else ""
    cluster = BrokerCluster(
        name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", spec=spec, kafka_cluster_id=cluster_id,
        goal=ClusterGoal.STOPPED if stopped else ClusterGoal.RUNNING,
    )  # fmt: skip
    return saved(tx, cluster)


def update(
    tx: Transaction, name: str, etag: str, change: Callable[[BrokerClusterSpec], BrokerClusterSpec]
) -> BrokerCluster:
    """Changes the spec of the broker cluster by `change`."""
    cluster = present(tx, BrokerCluster, name, etag)
    check_not_deleted(cluster)
    spec = with_credentials(with_kept_tls(change(cluster.spec), cluster.spec), tx.snapshot)
    if spec == cluster.spec:
        return cluster
    check_change(cluster.spec, spec, placed=bool(tx.snapshot.workloads_in(WorkloadKind.BROKER, name)))
    check(spec, tx.snapshot, name)
    changed = dataclasses.replace(cluster, spec=spec, generation=cluster.generation + 1, note="")
    if _servers(spec) == _servers(cluster.spec):
        return saved(tx, changed)
    # These servers may be another Kafka, perhaps one where its users' names are taken.
    changed = saved(tx, dataclasses.replace(changed, kafka_cluster_id="", reachable=None))
    for user in tx.snapshot.users_of(name):
        check_own_names(user.name, user.spec, tx.snapshot)
    return changed


def _servers(spec: BrokerClusterSpec) -> str:
    return spec.bootstrap_servers if isinstance(spec, ExternalBrokers) else ""


def delete(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Begins to delete a broker cluster and its data."""
    cluster = present(tx, BrokerCluster, name, etag)
    if cluster.goal is not ClusterGoal.DELETED and (users := _users(tx, name)):
        names = ", ".join(u.name for u in users)
        raise FailedPrecondition(
            f"broker cluster {name!r} is used by worker clusters {names}: delete these first",
            reason="IN_USE",
            metadata={"worker_clusters": names},
        )
    if cluster.goal is not ClusterGoal.DELETED and (topics := tx.snapshot.topics_of(name)):
        names = ", ".join(topic.name for topic in topics[:MAX_NAMED])
        more = f" and {len(topics) - MAX_NAMED} more" if len(topics) > MAX_NAMED else ""
        raise FailedPrecondition(
            f"broker cluster {name!r} is used by topics {names}{more}: delete these first",
            reason="IN_USE",
            metadata={"topics": names},
        )
    return with_goal(tx, cluster, ClusterGoal.DELETED)


def start(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Sets the goal that the brokers run."""
    cluster = present(tx, BrokerCluster, name, etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    return with_goal(tx, cluster, ClusterGoal.RUNNING)


def stop(tx: Transaction, name: str, etag: str, *, force: bool = False) -> BrokerCluster:
    """Sets the goal that the brokers stop, or with `force` that they are killed; their data stays."""
    cluster = present(tx, BrokerCluster, name, etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    running = ", ".join(u.name for u in _users(tx, name) if u.status.state is not ClusterState.STOPPED)
    if running:
        raise FailedPrecondition(
            f"worker clusters {running} run on broker cluster {name!r}: stop these first",
            reason="IN_USE",
            metadata={"worker_clusters": running},
        )
    return with_goal(tx, cluster, ClusterGoal.STOPPED, force=force)


def _users(tx: Transaction, name: str) -> list[WorkerCluster]:
    """Returns its worker clusters, except those that are being deleted and no longer run."""
    return [user for user in tx.snapshot.users_of(name) if not tx.snapshot.is_past(user)]
