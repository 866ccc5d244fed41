"""A client of the gateway: one method a question, in the kinds and verbs of the command line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf.message import Message

from keelman.api.connect.v1 import broker_cluster_service_pb2 as bc
from keelman.api.connect.v1 import connector_service_pb2 as cn
from keelman.api.connect.v1 import worker_cluster_service_pb2 as wc
from keelman.api.connect.v1 import worker_service_pb2 as wk
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.api.connect.v1.worker_service_pb2_grpc import WorkerServiceStub
from keelman.api.copy.v1 import copy_run_service_pb2 as cr
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.api.node.v1 import node_service_pb2 as no
from keelman.api.node.v1 import workload_service_pb2 as wl
from keelman.api.node.v1.node_service_pb2_grpc import NodeServiceStub
from keelman.api.node.v1.workload_service_pb2_grpc import WorkloadServiceStub
from keelman.cli import kinds
from keelman.cli.kinds import Kind
from keelman.model.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound, Unavailable
from keelman.rpc.channels import channel

Resource: TypeAlias = Any  # one of the wire contract's resources; the kind says which

CALL_SECONDS = 30.0
UID_LENGTH = 32
WITH_TASKS: Mapping[str, bool] = {"include_tasks": True}


class Gateway:
    """Calls on one channel. Errors come as the classes of keelman.model.errors."""

    def __init__(self, link: Any) -> None:
        self.broker_clusters: Any = BrokerClusterServiceStub(link)
        self.worker_clusters: Any = WorkerClusterServiceStub(link)
        self.workers: Any = WorkerServiceStub(link)
        self.connectors: Any = ConnectorServiceStub(link)
        self.copy_runs: Any = CopyRunServiceStub(link)
        self.nodes: Any = NodeServiceStub(link)
        self.workloads: Any = WorkloadServiceStub(link)

    async def list(  # noqa: PLR0911  (one line a kind)
        self, kind: Kind, *, cluster: str = "", ended: bool = False
    ) -> Sequence[Resource]:
        """All resources of a kind, page by page; `cluster` narrows workers, connectors and copy runs. Raises NotFound
        for a cluster that is unknown."""
        match kind:
            case kinds.BROKER_CLUSTERS:
                return await _pages(self.broker_clusters.ListBrokerClusters, bc.ListBrokerClustersRequest())
            case kinds.WORKER_CLUSTERS:
                return await _pages(self.worker_clusters.ListWorkerClusters, wc.ListWorkerClustersRequest())
            case kinds.WORKERS:
                return await _pages(self.workers.ListWorkers, wk.ListWorkersRequest(worker_cluster=cluster))
            case kinds.CONNECTORS:
                return await _pages(self.connectors.ListConnectors, cn.ListConnectorsRequest(worker_cluster=cluster))
            case kinds.COPY_RUNS:
                request = cr.ListCopyRunsRequest(worker_cluster=cluster, include_ended=ended)
                return await _pages(self.copy_runs.ListCopyRuns, request)
            case kinds.NODES:
                return await _pages(self.nodes.ListNodes, no.ListNodesRequest())
        return await _pages(self.workloads.ListWorkloads, wl.ListWorkloadsRequest())

    async def get(  # noqa: PLR0911  (one line a kind)
        self, kind: Kind, name: str, *, cluster: str = ""
    ) -> Resource:
        """One resource; `cluster` is the worker cluster that it is of. Raises NotFound."""
        match kind:
            case kinds.BROKER_CLUSTERS:
                request: Any = bc.GetBrokerClusterRequest(name=name)
                return (await _answer(self.broker_clusters.GetBrokerCluster, request)).broker_cluster
            case kinds.WORKER_CLUSTERS:
                request = wc.GetWorkerClusterRequest(name=name)
                return (await _answer(self.worker_clusters.GetWorkerCluster, request)).worker_cluster
            case kinds.WORKERS:
                request = wk.GetWorkerRequest(name=await self.full_name(kind, name, cluster))
                return (await _answer(self.workers.GetWorker, request)).worker
            case kinds.CONNECTORS:
                owner, plain = await self.connector_name(name, cluster)
                request = cn.GetConnectorRequest(worker_cluster=owner, name=plain)
                return (await _answer(self.connectors.GetConnector, request)).connector
            case kinds.COPY_RUNS:
                uid = await self._uid(name)
                run = (await _answer(self.copy_runs.GetCopyRun, cr.GetCopyRunRequest(uid=uid))).copy_run
                if cluster not in ("", run.worker_cluster):
                    raise NotFound(
                        f"copy run {name} belongs to worker cluster {run.worker_cluster!r}, not to {cluster!r}"
                    )
                return run
            case kinds.NODES:
                return (await _answer(self.nodes.GetNode, no.GetNodeRequest(name=name))).node
        for workload in await self.list(kind):
            if workload.name == name:
                return workload
        raise NotFound(f"there is no workload {name!r}")

    async def _uid(self, name: str) -> str:
        """The uid of a copy run that is named by the beginning of it. Raises InvalidArgument for that of several."""
        if len(name) >= UID_LENGTH:
            return name
        found = sorted({r.uid for r in await self.list(kinds.COPY_RUNS, ended=True) if r.uid.startswith(name)})
        if len(found) > 1:
            raise InvalidArgument.of(
                "copy run", name, "more characters: several uids begin with it: " + ", ".join(found)
            )
        return found[0] if found else name

    async def full_name(self, kind: Kind, name: str, cluster: str) -> str:
        """The name that says all: a connector's and a worker's with its worker cluster. Raises NotFound, and
        InvalidArgument for a name of another worker cluster than `cluster`."""
        if kind is kinds.CONNECTORS:
            return "/".join(await self.connector_name(name, cluster))
        if kind is kinds.WORKERS:
            return "/".join(filter(None, kinds.cluster_and_name(kind, name, cluster)))
        return name

    async def connector_name(self, name: str, cluster: str) -> tuple[str, str]:
        """Worker cluster and plain name of a connector; without a cluster, the only one that has it."""
        owner, plain = kinds.cluster_and_name(kinds.CONNECTORS, name, cluster)
        if owner:
            return owner, plain
        owners = [c.worker_cluster for c in await self.list(kinds.CONNECTORS) if c.name == name]
        if len(owners) == 1:
            return owners[0], name
        if not owners:
            raise NotFound(f"there is no connector {name!r}")
        raise InvalidArgument.of("connector", name, "CLUSTER/NAME, as it is in " + ", ".join(owners))

    async def act(
        self, verb: str, kind: Kind, name: str, *, cluster: str = "", of: Mapping[str, bool] = WITH_TASKS
    ) -> Resource | None:
        """Does a verb on one resource; returns the resource where the answer carries it. `of` are the fields
        of a RestartConnectorRequest that say what of a connector is restarted."""
        match kind:
            case kinds.BROKER_CLUSTERS | kinds.WORKER_CLUSTERS:
                return await self._act_on_cluster(verb, kind, name)
            case kinds.WORKERS:
                return (await _answer(self.workers.RestartWorker, wk.RestartWorkerRequest(name=name))).worker
            case kinds.NODES:
                await _answer(self.nodes.DeleteNode, no.DeleteNodeRequest(name=name))
                return None
        owner, plain = await self.connector_name(name, cluster)
        calls: dict[str, tuple[Any, Any]] = {
            "delete": (self.connectors.DeleteConnector, cn.DeleteConnectorRequest),
            "pause": (self.connectors.PauseConnector, cn.PauseConnectorRequest),
            "resume": (self.connectors.ResumeConnector, cn.ResumeConnectorRequest),
            "start": (self.connectors.ResumeConnector, cn.ResumeConnectorRequest),
            "stop": (self.connectors.StopConnector, cn.StopConnectorRequest),
            "restart": (self.connectors.RestartConnector, cn.RestartConnectorRequest),
        }
        call, make = calls[verb]
        more = of if verb == "restart" else {}
        await _answer(call, make(worker_cluster=owner, name=plain, **more))
        return None

    async def _act_on_cluster(self, verb: str, kind: Kind, name: str) -> Resource | None:
        if verb == "restart":
            for worker in await self.list(kinds.WORKERS, cluster=name):
                await self.act("restart", kinds.WORKERS, worker.name)
            return await self.get(kind, name)
        noun = "BrokerCluster" if kind is kinds.BROKER_CLUSTERS else "WorkerCluster"
        module: Any = bc if kind is kinds.BROKER_CLUSTERS else wc
        stub = self.broker_clusters if kind is kinds.BROKER_CLUSTERS else self.worker_clusters
        call = f"{verb.capitalize()}{noun}"
        answer = await _answer(getattr(stub, call), getattr(module, f"{call}Request")(name=name))
        return getattr(answer, kind.singular.replace("-", "_"))

    async def create_broker_cluster(self, name: str, spec: Any) -> Resource:
        """Creates a broker cluster, which is then asked to run."""
        request = bc.CreateBrokerClusterRequest(name=name, spec=spec)
        return (await _answer(self.broker_clusters.CreateBrokerCluster, request)).broker_cluster

    async def create_worker_cluster(self, name: str, spec: Any) -> Resource:
        """Creates a worker cluster, stopped."""
        request = wc.CreateWorkerClusterRequest(name=name, spec=spec)
        return (await _answer(self.worker_clusters.CreateWorkerCluster, request)).worker_cluster

    async def create_connector(self, cluster: str, name: str, config: dict[str, str]) -> Resource:
        """Creates a connector in a running worker cluster."""
        request = cn.CreateConnectorRequest(worker_cluster=cluster, name=name, config=config)
        return _print_notes((await _answer(self.connectors.CreateConnector, request)).connector)

    async def configure_connector(self, cluster: str, name: str, config: dict[str, str]) -> Resource:
        """Replaces a connector's whole configuration."""
        request = cn.UpdateConnectorRequest(worker_cluster=cluster, name=name, config=config)
        return _print_notes((await _answer(self.connectors.UpdateConnector, request)).connector)

    async def client_properties(self, broker_cluster: str) -> dict[str, str]:
        """Java's client properties that reach a broker cluster; without a name the only one, or `default`.

        Raises NotFound, InvalidArgument where there are several, FailedPrecondition for one that has no address yet.
        """
        name = broker_cluster
        if not name:
            names = [one.name for one in await self.list(kinds.BROKER_CLUSTERS)]
            if not names:
                raise NotFound("there is no broker cluster: see `keelman create broker-cluster --help`")
            if len(names) > 1 and "default" not in names:
                raise InvalidArgument(f"--broker-cluster: there are several: give one of {', '.join(names)}")
            name = names[0] if len(names) == 1 else "default"
        found = await self.get(kinds.BROKER_CLUSTERS, name)
        servers = found.status.bootstrap_servers or found.spec.external.bootstrap_servers
        if not servers:
            raise FailedPrecondition(f"broker cluster {name} has no address yet: see `keelman get bc {name}`")
        return {**found.spec.external.client_properties, "bootstrap.servers": servers}


def _print_notes(connector: Any) -> Resource:
    """The connector; what is to be noted of its configuration goes to standard error."""
    for note in connector.notes:
        print(f"keelman: note: {note}", file=sys.stderr)
    return connector


async def _answer(call: Any, request: Message) -> Any:
    """One answer. Raises Unavailable when there is none in time, and what the gateway refuses."""
    try:
        return await call(request, timeout=CALL_SECONDS)
    except DeadlineExceeded as error:
        raise Unavailable(f"the gateway gave no answer in time: {error.message}") from None


async def _pages(call: Any, request: Any) -> Sequence[Resource]:
    items: list[Resource] = []
    while True:
        answer = await _answer(call, request)
        for name, reason in getattr(answer, "unreachable", {}).items():
            print(f"keelman: worker cluster {name} could not be asked: {reason}", file=sys.stderr)
        fields = answer.DESCRIPTOR.fields
        items += getattr(answer, fields[0].name)
        if not answer.next_page_token:
            return items
        request.page_token = answer.next_page_token


@contextlib.asynccontextmanager
async def connect(address: str) -> AsyncIterator[Gateway]:
    """A client of the gateway at host:port."""
    async with channel(address) as link:
        yield Gateway(link)
