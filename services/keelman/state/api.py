"""The gRPC services of broker clusters, worker clusters, workers, nodes and workloads: decode, call, encode."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import Message

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
from keelman.model.cluster import BrokerCluster, BrokerClusterSpec, WorkerCluster, WorkerClusterSpec
from keelman.model.node import NodeSpec
from keelman.model.workload import WorkerSpec, Workload
from keelman.rpc.masks import masked
from keelman.rpc.pages import page
from keelman.rpc.server import Context
from keelman.state import requests, store
from keelman.state.database import Database, Transaction
from keelman.state.encoding import (
    broker_cluster_message,
    broker_cluster_spec,
    node_message,
    node_spec,
    node_spec_message,
    worker_cluster_message,
    worker_cluster_spec,
    worker_message,
    workload_message,
)
from keelman.state.removal import check_removal, check_same_removed
from keelman.state.reports import Reports, judge
from keelman.state.sessions import Sessions
from keelman.state.snapshot import Snapshot

M = TypeVar("M", bound=Message)
N = TypeVar(
    "N",
    nodes_pb.UpdateNodeResponse,
    nodes_pb.CordonNodeResponse,
    nodes_pb.UncordonNodeResponse,
    nodes_pb.DrainNodeResponse,
)
_NodeChange = (
    nodes_pb.UpdateNodeRequest | nodes_pb.CordonNodeRequest | nodes_pb.UncordonNodeRequest | nodes_pb.DrainNodeRequest
)


async def load_snapshot(database: Database) -> Snapshot:
    """Everything, as it is now."""
    async with database.read() as session:
        return await store.load(session)


async def _write(database: Database, request_id: str, empty: M, work: Callable[[Transaction], Awaitable[M]]) -> M:
    """The answer of one writing transaction, or of the one that had this request id; `empty` is one to read it into."""
    method = type(empty).__name__.removesuffix("Response")
    async with database.write() as tx:
        return await requests.once(tx, request_id, method, empty, lambda: work(tx))


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

    async def CreateNode(self, request: nodes_pb.CreateNodeRequest, context: Context) -> nodes_pb.CreateNodeResponse:
        """Creates a node before its agent comes."""

        async def work(tx: Transaction) -> nodes_pb.CreateNodeResponse:
            made = await requests.create_node(tx, request.name, node_spec(request.spec))
            return nodes_pb.CreateNodeResponse(node=node_message(made))

        return await _write(self.database, request.request_id, nodes_pb.CreateNodeResponse(), work)

    async def UpdateNode(self, request: nodes_pb.UpdateNodeRequest, context: Context) -> nodes_pb.UpdateNodeResponse:
        """Changes the spec of a node."""

        def change(spec: NodeSpec) -> NodeSpec:
            return node_spec(masked(node_spec_message(spec), request.spec, request.update_mask))

        return await self._changed(request, nodes_pb.UpdateNodeResponse(), change)

    async def CordonNode(self, request: nodes_pb.CordonNodeRequest, context: Context) -> nodes_pb.CordonNodeResponse:
        """Has nothing new placed on a node."""
        return await self._changed(
            request, nodes_pb.CordonNodeResponse(), lambda spec: dataclasses.replace(spec, cordoned=True)
        )

    async def UncordonNode(
        self, request: nodes_pb.UncordonNodeRequest, context: Context
    ) -> nodes_pb.UncordonNodeResponse:
        """Has new things placed on a node again."""
        return await self._changed(
            request,
            nodes_pb.UncordonNodeResponse(),
            lambda spec: dataclasses.replace(spec, cordoned=False, draining=False),
        )

    async def DrainNode(self, request: nodes_pb.DrainNodeRequest, context: Context) -> nodes_pb.DrainNodeResponse:
        """Has what may be elsewhere leave a node."""
        return await self._changed(
            request,
            nodes_pb.DrainNodeResponse(),
            lambda spec: dataclasses.replace(spec, cordoned=True, draining=True),
        )

    async def DeleteNode(self, request: nodes_pb.DeleteNodeRequest, context: Context) -> nodes_pb.DeleteNodeResponse:
        """Forgets a node."""

        async def work(tx: Transaction) -> nodes_pb.DeleteNodeResponse:
            await requests.delete_node(tx, request.name, request.etag)
            return nodes_pb.DeleteNodeResponse()

        return await _write(self.database, request.request_id, nodes_pb.DeleteNodeResponse(), work)

    async def _changed(self, request: _NodeChange, empty: N, change: Callable[[NodeSpec], NodeSpec]) -> N:
        async def work(tx: Transaction) -> N:
            node = await requests.update_node(tx, request.name, request.etag, change)
            return type(empty)(node=node_message(node))

        return await _write(self.database, request.request_id, empty, work)


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

        async def work(tx: Transaction) -> brokers_pb.CreateBrokerClusterResponse:
            cluster = await requests.create_broker_cluster(tx, request.name, broker_cluster_spec(request.spec))
            return brokers_pb.CreateBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

        return await _write(self.database, request.request_id, brokers_pb.CreateBrokerClusterResponse(), work)

    async def UpdateBrokerCluster(
        self, request: brokers_pb.UpdateBrokerClusterRequest, context: Context
    ) -> brokers_pb.UpdateBrokerClusterResponse:
        """Changes the spec of a broker cluster."""

        def change(cluster: BrokerCluster) -> BrokerClusterSpec:
            present = broker_cluster_message(cluster).spec
            return broker_cluster_spec(masked(present, request.spec, request.update_mask))

        snapshot = await load_snapshot(self.database)
        seen = snapshot.broker_cluster(request.name)
        checked = await check_removal(snapshot, seen, change(seen))

        async def work(tx: Transaction) -> brokers_pb.UpdateBrokerClusterResponse:
            present = await store.load(tx.session)
            cluster = present.broker_cluster(request.name)
            check_same_removed(present, cluster, change(cluster), checked)
            cluster = await requests.update_broker_cluster(tx, request.name, request.etag, change)
            return brokers_pb.UpdateBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

        return await _write(self.database, request.request_id, brokers_pb.UpdateBrokerClusterResponse(), work)

    async def DeleteBrokerCluster(
        self, request: brokers_pb.DeleteBrokerClusterRequest, context: Context
    ) -> brokers_pb.DeleteBrokerClusterResponse:
        """Asks for a broker cluster's end."""

        async def work(tx: Transaction) -> brokers_pb.DeleteBrokerClusterResponse:
            cluster = await requests.delete_broker_cluster(tx, request.name, request.etag)
            return brokers_pb.DeleteBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

        return await _write(self.database, request.request_id, brokers_pb.DeleteBrokerClusterResponse(), work)

    async def StartBrokerCluster(
        self, request: brokers_pb.StartBrokerClusterRequest, context: Context
    ) -> brokers_pb.StartBrokerClusterResponse:
        """Asks a broker cluster to run."""

        async def work(tx: Transaction) -> brokers_pb.StartBrokerClusterResponse:
            cluster = await requests.start_broker_cluster(tx, request.name, request.etag)
            return brokers_pb.StartBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

        return await _write(self.database, request.request_id, brokers_pb.StartBrokerClusterResponse(), work)

    async def StopBrokerCluster(
        self, request: brokers_pb.StopBrokerClusterRequest, context: Context
    ) -> brokers_pb.StopBrokerClusterResponse:
        """Asks a broker cluster to stop."""

        async def work(tx: Transaction) -> brokers_pb.StopBrokerClusterResponse:
            cluster = await requests.stop_broker_cluster(tx, request.name, request.etag)
            return brokers_pb.StopBrokerClusterResponse(broker_cluster=broker_cluster_message(cluster))

        return await _write(self.database, request.request_id, brokers_pb.StopBrokerClusterResponse(), work)


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

        async def work(tx: Transaction) -> workers_pb.CreateWorkerClusterResponse:
            cluster = await requests.create_worker_cluster(tx, request.name, worker_cluster_spec(request.spec))
            return workers_pb.CreateWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

        return await _write(self.database, request.request_id, workers_pb.CreateWorkerClusterResponse(), work)

    async def UpdateWorkerCluster(
        self, request: workers_pb.UpdateWorkerClusterRequest, context: Context
    ) -> workers_pb.UpdateWorkerClusterResponse:
        """Changes the spec of a worker cluster."""

        def change(cluster: WorkerCluster) -> WorkerClusterSpec:
            present = worker_cluster_message(cluster).spec
            return worker_cluster_spec(masked(present, request.spec, request.update_mask))

        async def work(tx: Transaction) -> workers_pb.UpdateWorkerClusterResponse:
            cluster = await requests.update_worker_cluster(tx, request.name, request.etag, change)
            return workers_pb.UpdateWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

        return await _write(self.database, request.request_id, workers_pb.UpdateWorkerClusterResponse(), work)

    async def DeleteWorkerCluster(
        self, request: workers_pb.DeleteWorkerClusterRequest, context: Context
    ) -> workers_pb.DeleteWorkerClusterResponse:
        """Asks for a worker cluster's end."""

        async def work(tx: Transaction) -> workers_pb.DeleteWorkerClusterResponse:
            cluster = await requests.delete_worker_cluster(tx, request.name, request.etag)
            return workers_pb.DeleteWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

        return await _write(self.database, request.request_id, workers_pb.DeleteWorkerClusterResponse(), work)

    async def StartWorkerCluster(
        self, request: workers_pb.StartWorkerClusterRequest, context: Context
    ) -> workers_pb.StartWorkerClusterResponse:
        """Asks a worker cluster to run."""

        async def work(tx: Transaction) -> workers_pb.StartWorkerClusterResponse:
            cluster = await requests.start_worker_cluster(tx, request.name, request.etag)
            return workers_pb.StartWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

        return await _write(self.database, request.request_id, workers_pb.StartWorkerClusterResponse(), work)

    async def StopWorkerCluster(
        self, request: workers_pb.StopWorkerClusterRequest, context: Context
    ) -> workers_pb.StopWorkerClusterResponse:
        """Asks a worker cluster to stop."""

        async def work(tx: Transaction) -> workers_pb.StopWorkerClusterResponse:
            cluster = await requests.stop_worker_cluster(tx, request.name, request.etag, force=request.force)
            return workers_pb.StopWorkerClusterResponse(worker_cluster=worker_cluster_message(cluster))

        return await _write(self.database, request.request_id, workers_pb.StopWorkerClusterResponse(), work)


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

        async def work(tx: Transaction) -> worker_pb.RestartWorkerResponse:
            return worker_pb.RestartWorkerResponse(worker=self._shown(await requests.restart_worker(tx, request.name)))

        return await _write(self.database, request.request_id, worker_pb.RestartWorkerResponse(), work)

    def _shown(self, worker: Workload) -> worker_pb2.Worker:
        return worker_message(self.sessions.vital(worker), self.reports.membership(worker))
