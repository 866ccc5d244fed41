"""What users ask of broker clusters. Each function is one transaction's work; raises the errors a user is to read."""

from __future__ import annotations

import base64
import dataclasses
import uuid

from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
)
from keelman.model.errors import AlreadyExists, FailedPrecondition
from keelman.model.names import checked_name
from keelman.state import store
from keelman.state.database import Transaction
from keelman.state.properties import check_broker_cluster, check_not_deleted
from keelman.state.statuses import broker_cluster_status


async def create(tx: Transaction, name: str, spec: BrokerClusterSpec) -> BrokerCluster:
    """A new broker cluster that is asked to run."""
    checked_name("name", name)
    snapshot = await store.load(tx.session)
    if name in snapshot.broker_clusters:
        raise AlreadyExists(f"name: a broker cluster named {name!r} exists already: choose another name")
    check_broker_cluster(spec, snapshot)
    cluster = BrokerCluster(
        name=name,
        uid=str(uuid.uuid4()),
        create_time=tx.now,
        update_time=tx.now,
        generation=1,
        etag="",
        goal=ClusterGoal.RUNNING,
        spec=spec,
        kafka_cluster_id=_kafka_cluster_id() if isinstance(spec, ManagedBrokers) else "",
    )
    status = broker_cluster_status(cluster, snapshot)
    return await store.save_broker_cluster(tx, dataclasses.replace(cluster, status=status))


async def delete(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks for the end of a broker cluster and of its data."""
    snapshot = await store.load(tx.session)
    cluster = store.found_broker_cluster(snapshot, name)
    store.check_etag(name, etag, cluster.etag)
    if cluster.goal is ClusterGoal.DELETED:
        return cluster
    if users := snapshot.users_of(name):
        names = ", ".join(u.name for u in users)
        raise FailedPrecondition(
            f"broker cluster {name!r} is used by worker clusters {names}: delete these first",
            reason="IN_USE",
            metadata={"worker_clusters": names},
        )
    return await _changed(tx, cluster, ClusterGoal.DELETED)


async def start(tx: Transaction, name: str) -> BrokerCluster:
    """Asks the brokers to run."""
    cluster = store.found_broker_cluster(await store.load(tx.session), name)
    _check_managed(cluster)
    check_not_deleted(cluster)
    return cluster if cluster.goal is ClusterGoal.RUNNING else await _changed(tx, cluster, ClusterGoal.RUNNING)


async def stop(tx: Transaction, name: str) -> BrokerCluster:
    """Asks the brokers to stop; their data stays."""
    snapshot = await store.load(tx.session)
    cluster = store.found_broker_cluster(snapshot, name)
    _check_managed(cluster)
    check_not_deleted(cluster)
    running = [u.name for u in snapshot.users_of(name) if u.status.state is not ClusterState.STOPPED]
    if running:
        raise FailedPrecondition(
            f"worker clusters {', '.join(running)} run on broker cluster {name!r}: stop these first",
            reason="IN_USE",
            metadata={"worker_clusters": ", ".join(running)},
        )
    return cluster if cluster.goal is ClusterGoal.STOPPED else await _changed(tx, cluster, ClusterGoal.STOPPED)


async def _changed(tx: Transaction, cluster: BrokerCluster, goal: ClusterGoal) -> BrokerCluster:
    changed = dataclasses.replace(cluster, goal=goal, generation=cluster.generation + 1, note="")
    status = broker_cluster_status(changed, await store.load(tx.session))
    return await store.save_broker_cluster(tx, dataclasses.replace(changed, status=status))


def _check_managed(cluster: BrokerCluster) -> None:
    if isinstance(cluster.spec, ExternalBrokers):
        raise FailedPrecondition(
            f"broker cluster {cluster.name!r} is external: whoever runs its brokers starts and stops them",
            reason="EXTERNAL",
        )


def _kafka_cluster_id() -> str:
    """22 characters of base64url, as Kafka makes them: none begins with '-', which its tools take for an option."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made
