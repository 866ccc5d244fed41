"""What users ask of worker clusters and of workers. Each function is one transaction's work."""

from __future__ import annotations

import dataclasses
import uuid

from keelman.model.cluster import ClusterGoal, WorkerCluster, WorkerClusterSpec
from keelman.model.errors import AlreadyExists, FailedPrecondition, NotFound
from keelman.model.names import checked_name
from keelman.model.workload import Goal, Workload, WorkloadKind
from keelman.state import store
from keelman.state.database import Transaction
from keelman.state.properties import check_not_deleted, check_worker_cluster
from keelman.state.snapshot import Snapshot
from keelman.state.statuses import worker_cluster_status


async def create(tx: Transaction, name: str, spec: WorkerClusterSpec) -> WorkerCluster:
    """A new worker cluster, stopped."""
    checked_name("name", name)
    snapshot = await store.load(tx.session)
    if name in snapshot.worker_clusters:
        raise AlreadyExists(f"name: a worker cluster named {name!r} exists already: choose another name")
    check_worker_cluster(name, spec, snapshot)
    cluster = WorkerCluster(
        name=name,
        uid=str(uuid.uuid4()),
        create_time=tx.now,
        update_time=tx.now,
        generation=1,
        etag="",
        goal=ClusterGoal.STOPPED,
        spec=spec,
    )
    status = worker_cluster_status(cluster, snapshot)
    return await store.save_worker_cluster(tx, dataclasses.replace(cluster, status=status))


async def delete(tx: Transaction, name: str, etag: str) -> WorkerCluster:
    """Asks for the end of a worker cluster; its topics stay."""
    cluster = store.found_worker_cluster(await store.load(tx.session), name)
    store.check_etag(name, etag, cluster.etag)
    return cluster if cluster.goal is ClusterGoal.DELETED else await _changed(tx, cluster, ClusterGoal.DELETED)


async def start(tx: Transaction, name: str) -> WorkerCluster:
    """Asks the workers to run."""
    snapshot = await store.load(tx.session)
    cluster = store.found_worker_cluster(snapshot, name)
    check_not_deleted(cluster)
    brokers = snapshot.broker_clusters[cluster.spec.broker_cluster]
    if brokers.goal is not ClusterGoal.RUNNING:
        raise FailedPrecondition(
            f"broker cluster {brokers.name!r} of worker cluster {name!r} is {brokers.status.state}: start it first",
            reason="BROKERS_STOPPED",
            metadata={"broker_cluster": brokers.name},
        )
    return cluster if cluster.goal is ClusterGoal.RUNNING else await _changed(tx, cluster, ClusterGoal.RUNNING)


async def stop(tx: Transaction, name: str) -> WorkerCluster:
    """Asks the workers to stop."""
    cluster = store.found_worker_cluster(await store.load(tx.session), name)
    check_not_deleted(cluster)
    return cluster if cluster.goal is ClusterGoal.STOPPED else await _changed(tx, cluster, ClusterGoal.STOPPED)


async def restart_worker(tx: Transaction, name: str) -> Workload:
    """A new generation of one worker: its agent ends the process of the old one and starts it again."""
    worker = found_worker(await store.load(tx.session), name)
    if worker.goal is not Goal.RUNNING:
        raise FailedPrecondition(
            f"worker {name!r} is asked to be {worker.goal}: start worker cluster {worker.cluster!r}",
            reason="NOT_RUNNING",
        )
    worker = dataclasses.replace(worker, generation=worker.generation + 1)
    await store.save_workload(tx, worker)
    return worker


def found_worker(snapshot: Snapshot, name: str) -> Workload:
    """The workload of a worker's name, e.g. "demo/0"; raises NotFound."""
    workload = snapshot.workloads.get(f"{WorkloadKind.WORKER}/{name}")
    if workload is None:
        if cluster := name.rpartition("/")[0]:
            store.found_worker_cluster(snapshot, cluster)
        raise NotFound(f"no worker is named {name!r} (a name is <worker cluster>/<number>)", metadata={"worker": name})
    return workload


async def _changed(tx: Transaction, cluster: WorkerCluster, goal: ClusterGoal) -> WorkerCluster:
    changed = dataclasses.replace(cluster, goal=goal, generation=cluster.generation + 1, note="")
    status = worker_cluster_status(changed, await store.load(tx.session))
    return await store.save_worker_cluster(tx, dataclasses.replace(changed, status=status))
