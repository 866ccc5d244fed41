"""Waits for clusters of a state service, and checks whether one is gone."""

from __future__ import annotations

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import worker_cluster_pb2
from keelman.model.errors import NotFound
from support.eventually import eventually
from support.state.service import Clients

STATE = brokers.ClusterState


async def in_state(clients: Clients, name: str, expected: str) -> worker_cluster_pb2.WorkerCluster:
    async def look():
        cluster = await clients.worker_cluster(name)
        return cluster if STATE.Name(cluster.status.state) == f"CLUSTER_STATE_{expected}" else None

    return await eventually(look, what=f"{name} is {expected}")


async def gone(get) -> bool:
    try:
        await get
    except NotFound:
        return True
    return False


async def is_degraded(clients: Clients) -> bool:
    status = (await clients.broker_cluster("ext")).status
    return status.state == STATE.CLUSTER_STATE_DEGRADED and "127.0.0.1:1" in status.message
