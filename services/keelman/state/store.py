"""Nodes, clusters and workloads in the database: each write with its event.

Every function takes a session (to read) or a transaction (to write). A cluster's status is derived: `settle` brings it
up to date at the end of each writing transaction, so no stored status is ever behind what it is derived from.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.api.event.v1 import event_pb2
from keelman.model.cluster import (
    BrokerCluster,
    WorkerCluster,
)
from keelman.model.errors import Conflict
from keelman.model.node import Node, NodeState
from keelman.model.workload import (
    Workload,
)
from keelman.state.database import Transaction, micros
from keelman.state.encoding import event_bytes
from keelman.state.planning.status import with_status
from keelman.state.rows import broker_cluster_of, node_of, plain, worker_cluster_of, workload_of
from keelman.state.snapshot import C, Snapshot
from keelman.state.tables import BrokerClusterRow, CounterRow, NodeRow, WorkerClusterRow, WorkloadRow

CREATED = event_pb2.EVENT_TYPE_CREATED
UPDATED = event_pb2.EVENT_TYPE_UPDATED
DELETED = event_pb2.EVENT_TYPE_DELETED
NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD = "node", "broker_cluster", "worker_cluster", "workload"
NOUNS = (NODE, BROKER_CLUSTER, WORKER_CLUSTER, WORKLOAD)
Resource: TypeAlias = BrokerCluster | WorkerCluster | Workload
TABLES: dict[str, tuple[Any, Callable[[Any], Resource]]] = {
    BROKER_CLUSTER: (BrokerClusterRow, broker_cluster_of),
    WORKER_CLUSTER: (WorkerClusterRow, worker_cluster_of),
    WORKLOAD: (WorkloadRow, workload_of),
}


async def load(session: AsyncSession) -> Snapshot:
    """Everything, as one moment saw it."""
    return Snapshot(
        nodes={r.name: node_of(r) for r in (await session.exec(select(NodeRow))).all()},
        broker_clusters={r.name: broker_cluster_of(r) for r in (await session.exec(select(BrokerClusterRow))).all()},
        worker_clusters={r.name: worker_cluster_of(r) for r in (await session.exec(select(WorkerClusterRow))).all()},
        workloads={r.name: workload_of(r) for r in (await session.exec(select(WorkloadRow))).all()},
    )


async def workloads_of(session: AsyncSession, node: str) -> tuple[int, dict[str, Workload]]:
    """The workloads of one node, and the revision at which they are so."""
    revision = (await session.exec(select(CounterRow.value).where(col(CounterRow.name) == "revision"))).one()
    rows = (await session.exec(select(WorkloadRow).where(col(WorkloadRow.node) == node))).all()
    return revision, {r.name: workload_of(r) for r in rows}


async def next_session(tx: Transaction) -> int:
    """A number that no session ever had."""
    counter = await tx.session.get_one(CounterRow, "session", with_for_update=True)
    counter.value += 1
    return counter.value


async def session_of(session: AsyncSession, node: str) -> int:
    """Number of the newest session of a node; 0 when there is none."""
    row = await session.get(NodeRow, node)
    return 0 if row is None else row.session


async def register(tx: Transaction, node: Node, incarnation: str, session: int) -> None:
    """Stores a node's registration; a node that is new gets a uid."""
    row = await tx.session.get(NodeRow, node.name)
    kind = UPDATED
    if row is None:
        kind = CREATED
        row = NodeRow(
            name=node.name, uid=str(uuid.uuid4()), create_time=micros(tx.now), update_time=0, state=node.state,
            agent_address="", cpus=0, memory_bytes=0, version="", incarnation="", session=0, message="", address="",
            spec={}, generation=1, revision=0,
        )  # fmt: skip
        tx.session.add(row)
    row.agent_address, row.cpus, row.memory_bytes = node.agent_address, node.cpus, node.memory_bytes
    row.address = node.address
    row.version, row.incarnation, row.session = node.version, incarnation, session
    row.state, row.message, row.update_time = NodeState.ONLINE, "", micros(tx.now)
    await _node_event(tx, row, kind)


async def save_node(tx: Transaction, node: Node) -> Node:
    """Stores a node that is new, or has another spec; returns it with its new etag."""
    row = await tx.session.get(NodeRow, node.name)
    kind = UPDATED
    if row is None:
        kind = CREATED
        row = NodeRow(
            name=node.name, uid=node.uid, create_time=micros(tx.now), update_time=0, state=node.state, agent_address="",
            cpus=0, memory_bytes=0, version="", incarnation="", session=0, message="", address="", spec={},
            generation=1, revision=0,
        )  # fmt: skip
        tx.session.add(row)
    row.spec, row.generation, row.update_time = plain(node.spec), node.generation, micros(tx.now)
    await _node_event(tx, row, kind)
    return node_of(row)


async def judge(tx: Transaction, name: str, state: NodeState, message: str) -> None:
    """Stores whether a node is heard of."""
    row = await tx.session.get_one(NodeRow, name)
    if (row.state, row.message) != (state, message):
        row.state, row.message, row.update_time = state, message, micros(tx.now)
        await _node_event(tx, row, UPDATED)


async def forget_node(tx: Transaction, name: str) -> None:
    """Deletes a node's row."""
    row = await tx.session.get_one(NodeRow, name)
    await _node_event(tx, row, DELETED)
    await tx.session.delete(row)


async def save_cluster(tx: Transaction, cluster: C) -> C:
    """Stores a new or changed cluster; returns it with its new etag."""
    cluster = dataclasses.replace(cluster, update_time=tx.now, etag=str(tx.revision + 1))
    values: dict[str, Any] = {
        "uid": cluster.uid, "create_time": micros(cluster.create_time), "update_time": micros(cluster.update_time),
        "generation": cluster.generation, "revision": tx.revision + 1, "goal": str(cluster.goal),
        "spec": plain(cluster.spec), "note": cluster.note, "status": plain(cluster.status),
    }  # fmt: skip
    if isinstance(cluster, BrokerCluster):
        values |= {
            "kafka_cluster_id": cluster.kafka_cluster_id, "reachable": cluster.reachable, "seen": plain(cluster.seen),
        }  # fmt: skip
        await _save(tx, BROKER_CLUSTER, cluster, values)
    else:
        values |= {"broker_cluster": cluster.spec.broker_cluster, "force": cluster.force}
        await _save(tx, WORKER_CLUSTER, cluster, values)
    return cluster


async def save_workload(tx: Transaction, workload: Workload) -> None:
    """Stores a new or changed workload; a new one gets a uid."""
    row = await tx.session.get(WorkloadRow, workload.name)
    if not workload.uid:
        workload = dataclasses.replace(workload, uid=row.uid if row is not None else str(uuid.uuid4()))
    values: dict[str, Any] = {
        "uid": workload.uid, "node": workload.node, "generation": workload.generation, "goal": str(workload.goal),
        "spec": plain(workload.spec), "status": None if workload.status is None else plain(workload.status),
        "has_run": workload.has_run, "tried_ports": list(workload.tried_ports), "limits": plain(workload.limits),
        "force": workload.force,
    }  # fmt: skip
    await _save(tx, WORKLOAD, workload, values)


async def _save(tx: Transaction, noun: str, resource: Resource, values: dict[str, Any]) -> None:
    table, _ = TABLES[noun]
    row = await tx.session.get(table, resource.name)
    kind = CREATED if row is None else UPDATED
    if row is None:
        tx.session.add(table(name=resource.name, **values))
    else:
        row.sqlmodel_update(values)
    tx.record(noun, resource.name, lambda r, t: event_bytes(kind, resource, r, t))
    await tx.session.flush()


async def drop(tx: Transaction, noun: str, name: str) -> None:
    """Deletes a workload that its node no longer has, or a cluster whose workloads are gone."""
    table, of = TABLES[noun]
    row = await tx.session.get_one(table, name)
    gone = of(row)
    await tx.session.delete(row)
    tx.record(noun, name, lambda r, t: event_bytes(DELETED, gone, r, t))
    await tx.session.flush()


async def settle(tx: Transaction) -> None:
    """Derives the clusters' statuses again after a write, and stores those that changed."""
    if not tx.wrote:
        return
    await tx.session.flush()
    snapshot = await load(tx.session)
    for brokers in snapshot.broker_clusters.values():
        if (found := with_status(brokers, snapshot)) != brokers:
            await save_cluster(tx, found)
    for workers in snapshot.worker_clusters.values():
        if (seen := with_status(workers, snapshot)) != workers:
            await save_cluster(tx, seen)


def check_etag(name: str, given: str, present: str) -> None:
    """Raises Conflict when the caller saw an older version than the present one."""
    if given and given != present:
        raise Conflict(
            f"etag: {given!r} is not the present one of {name!r}, which is {present!r}: read it again, then decide",
            reason="ETAG_MISMATCH",
            metadata={"name": name, "etag": present},
        )


async def _node_event(tx: Transaction, row: NodeRow, kind: int) -> None:
    row.revision = tx.revision + 1
    node = node_of(row)
    await tx.session.flush()
    tx.record(NODE, node.name, lambda r, t: event_bytes(kind, node, r, t))
