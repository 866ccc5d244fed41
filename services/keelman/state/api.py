"""The gRPC services of broker clusters, worker clusters, workers, nodes and workloads: decode, call, encode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.api.connect.v1 import broker_cluster_service_pb2_grpc as brokers_grpc
from keelman.api.connect.v1 import worker_cluster_pb2, worker_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as workers_pb
from keelman.api.connect.v1 import worker_cluster_service_pb2_grpc as workers_grpc
from keelman.api.connect.v1 import worker_service_pb2 as worker_pb
from keelman.api.connect.v1 import worker_service_pb2_grpc as worker_grpc
from keelman.api.node.v1 import node_service_pb2 as nodes_pb
from keelman.api.node.v1 import node_service_pb2_grpc as nodes_grpc
from keelman.api.node.v1 import workload_service_pb2 as workloads_pb
from keelman.api.node.v1 import workload_service_pb2_grpc as workloads_grpc
from keelman.model.cluster import WorkerCluster
from keelman.model.workload import WorkerSpec, Workload
from keelman.rpc.pages import page
from keelman.rpc.server import Context
from keelman.state import requests, store
from keelman.state.database import Database, Transaction
from keelman.state.encoding import (
    broker_cluster_message,
    broker_cluster_spec,
    node_message,
    worker_cluster_message,
    worker_cluster_spec,
    worker_message,
    workload_message,
)
from keelman.state.reports import Reports, judge
from keelman.state.sessions import Sessions
from keelman.state.snapshot import Snapshot

T = TypeVar("T")


async def load_snapshot(database: Database) -> Snapshot:
    """Everything, as it is now."""
    async with database.read() as session:
        return await store.load(session)


async def _write(database: Database, work: Callable[[Transaction], Awaitable[T]]) -> T:
    async with database.write() as tx:
        return await work(tx)


@dataclass(frozen=True, slots=True)
class NodeApi(nodes_grpc.NodeServiceServicer):
    """Nodes."""

    database: Database
    sessions: Sessions

    async def GetNode(self, request: nodes_pb.GetNodeRequest, context: Context) -> nodes_pb.GetNodeResponse:
        """One node."""
        node = (await load_snapshot(self.database)).node(request.name)
        return nodes_pb.GetNodeResponse(node=node_message(self.sessions.alive(node)))

    async def ListNodes(self, request: nodes_pb.ListNodesRequest, context: Context) -> nodes_pb.ListNodesResponse:
        """A page of nodes."""
        found = (await load_snapshot(self.database)).nodes.values()
        part, token = page(found, lambda n: n.name, request.page_size, request.page_token)
        shown = [node_message(self.sessions.alive(n)) for n in part]
        return nodes_pb.ListNodesResponse(nodes=shown, next_page_token=token)

    async def DeleteNode(self, request: nodes_pb.DeleteNodeRequest, context: Context) -> nodes_pb.DeleteNodeResponse:
        """Forgets a node."""
        await _write(self.database, lambda tx: requests.delete_node(tx, request.name))
        return nodes_pb.DeleteNodeResponse()


@dataclass(frozen=True, slots=True)
class WorkloadApi(workloads_grpc.WorkloadServiceServicer):
    """Workloads."""

    database: Database
    sessions: Sessions

    async def ListWorkloads(
        self, request: workloads_pb.ListWorkloadsRequest, context: Context
    ) -> workloads_pb.ListWorkloadsResponse:
        """A page of workloads."""
        everything = (await load_snapshot(self.database)).workloads.values()
        found = [w for w in everything if not request.node or w.node == request.node]
        part, token = page(found, lambda w: w.name, request.page_size, request.page_token)
        shown = [workload_message(self.sessions.vital(w)) for w in part]
        return workloads_pb.ListWorkloadsResponse(workloads=shown, next_page_token=token)


@dataclass(frozen=True, slots=True)
class BrokerClusterApi(brokers_grpc.BrokerClusterServiceServicer):
    """Broker clusters."""

    database: Database

    async def GetBrokerCluster(
        self, request: brokers_pb.GetBrokerClusterRequest, context: Context
    ) -> brokers_pb.GetBrokerClusterResponse:
        """One broker cluster."""
        cluster = (await load_snapshot(self.database)).broker_cluster(request.name)
        return brokers_pb.GetBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

    async def ListBrokerClusters(
        self, request: brokers_pb.ListBrokerClustersRequest, context: Context
    ) -> brokers_pb.ListBrokerClustersResponse:
        """A page of broker clusters."""
        found = (await load_snapshot(self.database)).broker_clusters.values()
        part, token = page(found, lambda c: c.name, request.page_size, request.page_token)
        shown = [broker_cluster_message(c) for c in part]
        return brokers_pb.ListBrokerClustersResponse(broker_clusters=shown, next_page_token=token)

    async def CreateBrokerCluster(
        self, request: brokers_pb.CreateBrokerClusterRequest, context: Context
    ) -> brokers_pb.CreateBrokerClusterResponse:
        """Creates a broker cluster and asks it to run."""

        async def make(tx: Transaction) -> brokers_pb.CreateBrokerClusterResponse:
            made = await requests.create_broker_cluster(tx, request.name, broker_cluster_spec(request.spec))
            return brokers_pb.CreateBrokerClusterResponse(broker_cluster=broker_cluster_message(made))

        empty = brokers_pb.CreateBrokerClusterResponse()
        return await _write(
            self.database,
            lambda tx: requests.once(tx, request.request_id, "CreateBrokerCluster", empty, lambda: make(tx)),
        )

    async def DeleteBrokerCluster(
        self, request: brokers_pb.DeleteBrokerClusterRequest, context: Context
    ) -> brokers_pb.DeleteBrokerClusterResponse:
        """Asks for a broker cluster's end."""
        cluster = await _write(self.database, lambda tx: requests.delete_broker_cluster(tx, request.name, request.etag))
        return brokers_pb.DeleteBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

    async def StartBrokerCluster(
        self, request: brokers_pb.StartBrokerClusterRequest, context: Context
    ) -> brokers_pb.StartBrokerClusterResponse:
        """Asks a broker cluster to run."""
        cluster = await _write(self.database, lambda tx: requests.start_broker_cluster(tx, request.name))
        return brokers_pb.StartBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

    async def StopBrokerCluster(
        self, request: brokers_pb.StopBrokerClusterRequest, context: Context
    ) -> brokers_pb.StopBrokerClusterResponse:
        """Asks a broker cluster to stop."""
        cluster = await _write(self.database, lambda tx: requests.stop_broker_cluster(tx, request.name))
        return brokers_pb.StopBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))


@dataclass(frozen=True, slots=True)
class WorkerClusterApi(workers_grpc.WorkerClusterServiceServicer):
    """Worker clusters."""

    database: Database
    reports: Reports

    async def GetWorkerCluster(
        self, request: workers_pb.GetWorkerClusterRequest, context: Context
    ) -> workers_pb.GetWorkerClusterResponse:
        """One worker cluster."""
        snapshot = await load_snapshot(self.database)
        cluster = snapshot.worker_cluster(request.name)
        return workers_pb.GetWorkerClusterResponse(worker_cluster=self._judged(cluster, snapshot))

    async def ListWorkerClusters(
        self, request: workers_pb.ListWorkerClustersRequest, context: Context
    ) -> workers_pb.ListWorkerClustersResponse:
        """A page of worker clusters."""
        snapshot = await load_snapshot(self.database)
        found = snapshot.worker_clusters.values()
        part, token = page(found, lambda c: c.name, request.page_size, request.page_token)
        shown = [self._judged(c, snapshot) for c in part]
        return workers_pb.ListWorkerClustersResponse(worker_clusters=shown, next_page_token=token)

    def _judged(self, cluster: WorkerCluster, snapshot: Snapshot) -> worker_cluster_pb2.WorkerCluster:
        message = worker_cluster_message(cluster)
        workers = (
            w for w in snapshot.workloads.values() if isinstance(w.spec, WorkerSpec) and w.cluster == cluster.name
        )
        judge(message.status, [m for m in map(self.reports.membership, workers) if m is not None])
        return message

    async def CreateWorkerCluster(
        self, request: workers_pb.CreateWorkerClusterRequest, context: Context
    ) -> workers_pb.CreateWorkerClusterResponse:
        """Creates a worker cluster, stopped."""

        async def make(tx: Transaction) -> workers_pb.CreateWorkerClusterResponse:
            made = await requests.create_worker_cluster(tx, request.name, worker_cluster_spec(request.spec))
            return workers_pb.CreateWorkerClusterResponse(worker_cluster=worker_cluster_message(made))

        empty = workers_pb.CreateWorkerClusterResponse()
        return await _write(
            self.database,
            lambda tx: requests.once(tx, request.request_id, "CreateWorkerCluster", empty, lambda: make(tx)),
        )

    async def DeleteWorkerCluster(
        self, request: workers_pb.DeleteWorkerClusterRequest, context: Context
    ) -> workers_pb.DeleteWorkerClusterResponse:
        """Asks for a worker cluster's end."""
        cluster = await _write(self.database, lambda tx: requests.delete_worker_cluster(tx, request.name, request.etag))
        return workers_pb.DeleteWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

    async def StartWorkerCluster(
        self, request: workers_pb.StartWorkerClusterRequest, context: Context
    ) -> workers_pb.StartWorkerClusterResponse:
        """Asks a worker cluster to run."""
        cluster = await _write(self.database, lambda tx: requests.start_worker_cluster(tx, request.name))
        return workers_pb.StartWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

    async def StopWorkerCluster(
        self, request: workers_pb.StopWorkerClusterRequest, context: Context
    ) -> workers_pb.StopWorkerClusterResponse:
        """Asks a worker cluster to stop."""
        cluster = await _write(self.database, lambda tx: requests.stop_worker_cluster(tx, request.name))
        return workers_pb.StopWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))


@dataclass(frozen=True, slots=True)
class WorkerApi(worker_grpc.WorkerServiceServicer):
    """Workers."""

    database: Database
    sessions: Sessions
    reports: Reports

    async def GetWorker(self, request: worker_pb.GetWorkerRequest, context: Context) -> worker_pb.GetWorkerResponse:
        """One worker."""
        worker = (await load_snapshot(self.database)).worker(request.name)
        return worker_pb.GetWorkerResponse(worker=self._shown(worker))

    async def ListWorkers(
        self, request: worker_pb.ListWorkersRequest, context: Context
    ) -> worker_pb.ListWorkersResponse:
        """A page of workers. Raises NotFound for an unknown worker cluster."""
        snapshot, cluster = await load_snapshot(self.database), request.worker_cluster
        if cluster:
            snapshot.worker_cluster(cluster)
        everything = snapshot.workloads.values()
        found = [w for w in everything if isinstance(w.spec, WorkerSpec) and cluster in ("", w.cluster)]
        part, token = page(found, lambda w: w.name, request.page_size, request.page_token)
        return worker_pb.ListWorkersResponse(workers=[self._shown(w) for w in part], next_page_token=token)

    async def RestartWorker(
        self, request: worker_pb.RestartWorkerRequest, context: Context
    ) -> worker_pb.RestartWorkerResponse:
        """Asks for a new process of a worker."""
        worker = await _write(self.database, lambda tx: requests.restart_worker(tx, request.name))
        return worker_pb.RestartWorkerResponse(worker=self._shown(worker))

    def _shown(self, worker: Workload) -> worker_pb2.Worker:
        return worker_message(self.sessions.vital(worker), self.reports.membership(worker))
