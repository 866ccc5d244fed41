"""What users ask of nodes, clusters and workers, each in one transaction. Errors are those that a user is to read."""

from __future__ import annotations

import base64
import dataclasses
import uuid
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import Protocol, TypeVar

import sqlalchemy as sa
from sqlmodel import col

from keelman.model.cluster import (
    BrokerCluster,
    BrokerClusterSpec,
    ClusterGoal,
    ClusterState,
    ExternalBrokers,
    ManagedBrokers,
    WorkerCluster,
    WorkerClusterSpec,
)
from keelman.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from keelman.model.names import checked_name, checked_request_id
from keelman.model.node import Node, NodeSpec, NodeState
from keelman.model.workload import Goal, Workload
from keelman.state import store
from keelman.state.database import Transaction, micros
from keelman.state.planning.status import with_status
from keelman.state.properties import (
    check_broker_change,
    check_broker_cluster,
    check_node,
    check_not_deleted,
    check_worker_change,
    check_worker_cluster,
)
from keelman.state.snapshot import C, Snapshot
from keelman.state.tables import RequestRow

KEPT = timedelta(days=1)


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...
    def MergeFromString(self, serialized: bytes, /) -> int: ...


M = TypeVar("M", bound=_Message)


async def once(tx: Transaction, request_id: str, method: str, empty: M, make: Callable[[], Awaitable[M]]) -> M:
    """What `make` answers; for a request id of the last day the stored answer, read into `empty`.

    Raises InvalidArgument for an id that is not legal or was used for another method.
    """
    if not request_id:
        return await make()
    checked_request_id("request_id", request_id)
    row = await tx.session.get(RequestRow, request_id)
    if row is not None:
        if row.method != method:
            raise InvalidArgument.of("request_id", request_id, f"an id of its own; this one was used for {row.method}")
        empty.MergeFromString(row.answer)
        return empty
    answer = await make()
    connection = await tx.session.connection()
    await connection.execute(sa.delete(RequestRow).where(col(RequestRow.time) < micros(tx.now - KEPT)))
    tx.session.add(
        RequestRow(request_id=request_id, method=method, time=micros(tx.now), answer=answer.SerializeToString())
    )
    return answer


async def delete_node(tx: Transaction, name: str, etag: str) -> None:
    """Forgets a node without an agent that carries nothing and that no cluster names."""
    snapshot = await store.load(tx.session)
    node = snapshot.node(name)
    store.check_etag(name, etag, node.etag)
    if node.state not in (NodeState.OFFLINE, NodeState.EXPECTED):
        raise FailedPrecondition(f"node {name!r} is {node.state}: stop its agent first", reason="NOT_OFFLINE")
    carried = sorted(w.name for w in snapshot.workloads.values() if w.node == name)
    if carried:
        raise FailedPrecondition(
            f"node {name!r} carries {', '.join(carried)}: delete their clusters first",
            reason="CARRIES_WORKLOADS",
            metadata={"workloads": ", ".join(carried)},
        )
    managed = {n: c.spec.nodes for n, c in snapshot.broker_clusters.items() if isinstance(c.spec, ManagedBrokers)}
    pinned = {n: c.spec.nodes for n, c in snapshot.worker_clusters.items()}
    named = [cluster for nodes in (managed, pinned) for cluster in nodes if name in nodes[cluster]]
    if named:
        raise FailedPrecondition(
            f"node {name!r} is named by clusters {', '.join(sorted(named))}: delete these first",
            reason="IN_USE",
            metadata={"clusters": ", ".join(sorted(named))},
        )
    await store.forget_node(tx, name)


async def create_node(tx: Transaction, name: str, spec: NodeSpec) -> Node:
    """A node whose agent has not come yet."""
    snapshot = await store.load(tx.session)
    _check_free("node", name, snapshot.nodes)
    check_node(spec)
    made = Node(name, str(uuid.uuid4()), tx.now, tx.now, NodeState.EXPECTED, agent_address="", spec=spec)
    return await store.save_node(tx, made)


async def update_node(tx: Transaction, name: str, etag: str, change: Callable[[NodeSpec], NodeSpec]) -> Node:
    """The node with the spec that `change` makes of its present one."""
    node = (await store.load(tx.session)).node(name)
    store.check_etag(name, etag, node.etag)
    spec = change(node.spec)
    if spec == node.spec:
        return node
    check_node(spec)
    return await store.save_node(tx, dataclasses.replace(node, spec=spec, generation=node.generation + 1))


async def update_broker_cluster(
    tx: Transaction, name: str, etag: str, change: Callable[[BrokerCluster], BrokerClusterSpec]
) -> BrokerCluster:
    """The broker cluster with the spec that `change` makes of its present one."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.broker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    check_not_deleted(cluster)
    spec = change(cluster)
    if spec == cluster.spec:
        return cluster
    check_broker_change(cluster.spec, spec)
    check_broker_cluster(spec, snapshot)
    changed = dataclasses.replace(cluster, spec=spec, generation=cluster.generation + 1, note="")
    return await store.save_cluster(tx, with_status(changed, snapshot))


async def update_worker_cluster(
    tx: Transaction, name: str, etag: str, change: Callable[[WorkerCluster], WorkerClusterSpec]
) -> WorkerCluster:
    """The worker cluster with the spec that `change` makes of its present one."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.worker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    check_not_deleted(cluster)
    spec = change(cluster)
    if spec == cluster.spec:
        return cluster
    check_worker_change(cluster.spec, spec)
    check_worker_cluster(name, spec, snapshot)
    changed = dataclasses.replace(cluster, spec=spec, generation=cluster.generation + 1, note="")
    return await store.save_cluster(tx, with_status(changed, snapshot))


async def create_broker_cluster(tx: Transaction, name: str, spec: BrokerClusterSpec) -> BrokerCluster:
    """A new broker cluster that is asked to run."""
    snapshot = await store.load(tx.session)
    _check_free("broker cluster", name, snapshot.broker_clusters)
    check_broker_cluster(spec, snapshot)
    cluster_id = _kafka_cluster_id() if isinstance(spec, ManagedBrokers) else ""
    made = BrokerCluster(
        name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", goal=ClusterGoal.RUNNING, spec=spec,
        kafka_cluster_id=cluster_id,
    )  # fmt: skip
    return await store.save_cluster(tx, with_status(made, snapshot))


async def create_worker_cluster(tx: Transaction, name: str, spec: WorkerClusterSpec) -> WorkerCluster:
    """A new worker cluster, stopped."""
    snapshot = await store.load(tx.session)
    _check_free("worker cluster", name, snapshot.worker_clusters)
    check_worker_cluster(name, spec, snapshot)
    made = WorkerCluster(name, str(uuid.uuid4()), tx.now, tx.now, 1, etag="", goal=ClusterGoal.STOPPED, spec=spec)
    return await store.save_cluster(tx, with_status(made, snapshot))


async def delete_broker_cluster(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks for the end of a broker cluster and of its data."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.broker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    if cluster.goal is not ClusterGoal.DELETED and (users := snapshot.users_of(name)):
        names = ", ".join(u.name for u in users)
        raise FailedPrecondition(
            f"broker cluster {name!r} is used by worker clusters {names}: delete these first",
            reason="IN_USE",
            metadata={"worker_clusters": names},
        )
    return await _set_goal(tx, cluster, ClusterGoal.DELETED, snapshot)


async def delete_worker_cluster(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Asks for the end of a worker cluster; its topics stay."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.worker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    return await _set_goal(tx, cluster, ClusterGoal.DELETED, snapshot)


async def start_broker_cluster(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks the brokers to run."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.broker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    return await _set_goal(tx, cluster, ClusterGoal.RUNNING, snapshot)


async def start_worker_cluster(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Asks the workers to run."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.worker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    check_not_deleted(cluster)
    brokers = snapshot.broker_clusters[cluster.spec.broker_cluster]
    if brokers.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(
            f"broker cluster {brokers.name!r} of worker cluster {name!r} is {brokers.status.state}: start it first",
            reason="BROKERS_STOPPED",
            metadata={"broker_cluster": brokers.name},
        )
    return await _set_goal(tx, cluster, ClusterGoal.RUNNING, snapshot)


async def stop_broker_cluster(tx: Transaction, name: str, etag: str) -> BrokerCluster:
    """Asks the brokers to stop; their data stays."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.broker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    _check_managed(cluster)
    check_not_deleted(cluster)
    running = ", ".join(u.name for u in snapshot.users_of(name) if u.status.state is not ClusterState.STOPPED)
    if running:
        raise FailedPrecondition(
            f"worker clusters {running} run on broker cluster {name!r}: stop these first",
            reason="IN_USE",
            metadata={"worker_clusters": running},
        )
    return await _set_goal(tx, cluster, ClusterGoal.STOPPED, snapshot)


async def stop_worker_cluster(tx: Transaction, name: str, etag: str, *, force: bool = False) -> WorkerCluster:
    """Asks the workers to stop, or has them killed."""
    snapshot = await store.load(tx.session)
    cluster = snapshot.worker_cluster(name)
    store.check_etag(name, etag, cluster.etag)
    check_not_deleted(cluster)
    if force and not cluster.force:
        changed = dataclasses.replace(
            cluster, goal=ClusterGoal.STOPPED, force=True, generation=cluster.generation + 1, note=""
        )
        return await store.save_cluster(tx, with_status(changed, snapshot))
    return await _set_goal(tx, cluster, ClusterGoal.STOPPED, snapshot)


async def restart_worker(tx: Transaction, name: str) -> Workload:
    """A new generation of one worker: its agent ends the process of the old one and starts it again."""
    worker = (await store.load(tx.session)).worker(name)
    if worker.goal is not Goal.RUNNING:
        raise FailedPrecondition(
            f"worker {name!r} is asked to be {worker.goal}: start worker cluster {worker.cluster!r}",
            reason="NOT_RUNNING",
        )
    worker = dataclasses.replace(worker, generation=worker.generation + 1)
    await store.save_workload(tx, worker)
    return worker


def _check_free(noun: str, name: str, known: Collection[str]) -> None:
    checked_name("name", name)
    if name in known:
        raise AlreadyExists(f"name: a {noun} named {name!r} exists already: choose another name")


async def _set_goal(tx: Transaction, cluster: C, goal: ClusterGoal, snapshot: Snapshot) -> C:
    """The cluster as it is, or with another goal in a new generation."""
    if cluster.goal is goal:
        return cluster
    changed = dataclasses.replace(cluster, goal=goal, generation=cluster.generation + 1, note="")
    if isinstance(changed, WorkerCluster) and goal is ClusterGoal.RUNNING:
        changed = dataclasses.replace(changed, force=False)
    return await store.save_cluster(tx, with_status(changed, snapshot))


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
