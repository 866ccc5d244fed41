"""Worker clusters of a running system, started and deleted as the tests of the gateway need them."""

from __future__ import annotations

from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1 import worker_service_pb2 as workers
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.api.connect.v1.worker_service_pb2_grpc import WorkerServiceStub
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING
from keelman.rpc.channels import Channel
from support.eventually import eventually

FILE_SOURCE = {"connector.class": "FileStreamSource", "file": "/data/in", "topic": "t"}


async def started_cluster(gateway: Channel, name: str, count: int = 1) -> None:
    stub = WorkerClusterServiceStub(gateway)
    spec = WorkerClusterSpec(broker_cluster="outside", count=count)
    await stub.CreateWorkerCluster(clusters.CreateWorkerClusterRequest(name=name, spec=spec))
    await stub.StartWorkerCluster(clusters.StartWorkerClusterRequest(name=name))

    async def runs_all() -> bool:
        list_workers = await WorkerServiceStub(gateway).ListWorkers(workers.ListWorkersRequest(worker_cluster=name))
        return [w.process.state for w in list_workers.workers] == [WORKLOAD_STATE_RUNNING] * count

    await eventually(runs_all)


async def deleted_cluster(gateway: Channel, name: str) -> None:
    stub = WorkerClusterServiceStub(gateway)
    await stub.DeleteWorkerCluster(clusters.DeleteWorkerClusterRequest(name=name))

    async def gone() -> bool:
        return name not in [
            c.name for c in (await stub.ListWorkerClusters(clusters.ListWorkerClustersRequest())).worker_clusters
        ]

    await eventually(gone)
