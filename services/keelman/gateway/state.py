"""Reads the gateway's own needs from the state service: worker clusters, workers, and the nodes of workloads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from keelman.api.connect.v1.connector_pb2 import Connector
from keelman.api.connect.v1.connector_report_service_pb2 import (
    ListConnectorReportsRequest,
    ListConnectorReportsResponse,
    WatchConnectorReportsRequest,
    WatchConnectorReportsResponse,
)
from keelman.api.connect.v1.connector_service_pb2 import ListConnectorsRequest
from keelman.api.connect.v1.worker_cluster_pb2 import WORKER_ENGINE_KAFKA_CONNECT, WorkerCluster
from keelman.api.connect.v1.worker_cluster_service_pb2 import (
    GetWorkerClusterRequest,
    ListWorkerClustersRequest,
    ScaleWorkerClusterRequest,
)
from keelman.api.connect.v1.worker_pb2 import Worker
from keelman.api.connect.v1.worker_service_pb2 import ListWorkersRequest
from keelman.api.node.v1.node_pb2 import Node
from keelman.api.node.v1.node_service_pb2 import GetNodeRequest
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING
from keelman.api.node.v1.workload_service_pb2 import ListWorkloadsRequest
from keelman.gateway.calls import Calls
from keelman.model.errors import KeelmanError, NotFound, Unavailable
from keelman.model.workload import WorkloadKind
from keelman.rpc.channels import Channel
from keelman.rpc.pages import LARGEST_SIZE
from keelman.runtime.logs.logging import get_logger

log = get_logger()


class State:
    """Calls to the state service, with deadlines of 10 s. They raise Unavailable if it cannot be reached."""

    def __init__(self, channel: Channel) -> None:
        self._calls = Calls(channel)
        self._known: dict[str, tuple[str, ...]] = {}

    async def worker_cluster(self, name: str) -> WorkerCluster:
        """Returns one worker cluster. Raises NotFound."""
        worker_cluster: WorkerCluster = (await self._calls.ask(GetWorkerClusterRequest(name=name))).worker_cluster
        return worker_cluster

    async def scale(self, name: str, workers: int, etag: str) -> WorkerCluster:
        """Sets the number of a cluster's workers. Raises NotFound, InvalidArgument, Conflict, FailedPrecondition."""
        request = ScaleWorkerClusterRequest(name=name, workers=workers, etag=etag)
        worker_cluster: WorkerCluster = (await self._calls.ask(request)).worker_cluster
        return worker_cluster

    async def worker_clusters(self) -> list[WorkerCluster]:
        """Returns all worker clusters, sorted by name."""
        return await self._calls.all(ListWorkerClustersRequest)

    async def connector_reports(self, request: ListConnectorsRequest) -> ListConnectorReportsResponse:
        """Returns a page of connectors as workers have reported them. Raises NotFound for an unknown worker cluster."""
        message = ListConnectorReportsRequest(
            page_size=request.page_size,
            page_token=request.page_token,
            worker_cluster=request.worker_cluster,
            state=request.state,
        )
        answer: ListConnectorReportsResponse = await self._calls.ask(message)
        return answer

    def watched_connectors(
        self, request: WatchConnectorReportsRequest
    ) -> AsyncGenerator[WatchConnectorReportsResponse, None]:
        """Yields the connectors that workers have reported, then each change. Raises NotFound, Unavailable."""
        return self._calls.stream(request)

    async def reported_connectors(self, connectors: Sequence[Connector]) -> set[tuple[str, str]]:
        """Returns worker cluster and name of each of these connectors that workers have reported."""
        reported: set[tuple[str, str]] = set()
        for start in range(0, len(connectors), LARGEST_SIZE):
            names = [
                f"{connector.worker_cluster}/{connector.name}" for connector in connectors[start : start + LARGEST_SIZE]
            ]
            answer = await self._calls.ask(ListConnectorReportsRequest(connectors=names))
            reported.update((connector.worker_cluster, connector.name) for connector in answer.connectors)
        return reported

    async def rest_urls(self, cluster: str) -> tuple[str, ...]:
        """Returns the URLs of the running workers' REST APIs, without a final slash, group members first.

        Raises NotFound for an unknown worker cluster and Unavailable (NO_RUNNING_WORKER) if none of its workers runs.
        While the state service is away, returns its last answer: workers continue without it.
        """
        try:
            urls = _rest_urls(await self._calls.all(ListWorkersRequest, worker_cluster=cluster))
            if not urls:
                await self._say_why_none(cluster)
            self._known[cluster] = urls
        except NotFound:
            self._known.pop(cluster, None)
            raise
        except Unavailable as error:
            if error.reason != "UNREACHABLE" or not self._known.get(cluster):
                raise
            log.warning("state_away", worker_cluster=cluster, error=error.message)
        return self._known[cluster]

    async def heeds_ids(self, cluster: str) -> bool:
        """Tells whether a cluster's workers execute a request with the same id only once. False if that is unknown."""
        try:
            worker_cluster = await self.worker_cluster(cluster)
        except KeelmanError:
            return False
        return worker_cluster.spec.engine != WORKER_ENGINE_KAFKA_CONNECT

    def known_urls(self, cluster: str) -> tuple[str, ...]:
        """Returns the last answer of rest_urls; empty before the first."""
        return self._known.get(cluster, ())

    async def agent_of(self, workload: str) -> tuple[str, str]:
        """Returns the node of a workload, and its agent's gRPC address. Raises NotFound, Unavailable (NO_AGENT)."""
        async for page in self._calls.pages(ListWorkloadsRequest, **_among(workload)):
            if page.name == workload:
                node: Node = (await self._calls.ask(GetNodeRequest(name=page.node))).node
                if not node.status.agent_address:
                    raise Unavailable(
                        f"node {node.name!r}, which has workload {workload!r}, has not reported its agent's address",
                        reason="NO_AGENT",
                    )
                return node.name, node.status.agent_address
        raise NotFound(f"no workload {workload!r} is placed on any node", metadata={"workload": workload})

    async def _say_why_none(self, cluster: str) -> None:
        worker_cluster = await self.worker_cluster(cluster)
        status = worker_cluster.status
        reason = f": {status.message}" if status.message else ""
        raise Unavailable(
            f"worker cluster {cluster!r} has no running worker ({status.ready_workers} of {status.wanted_workers} "
            f"ready){reason}",
            reason="NO_RUNNING_WORKER",
            metadata={"worker_cluster": cluster},
        )


def _among(workload: str) -> dict[str, str]:
    """Returns the filter for a list that contains a workload, as far as its name determines it."""
    kind, _, rest = workload.partition("/")
    match kind:
        case WorkloadKind.WORKER:
            return {"worker_cluster": rest.rpartition("/")[0]}
        case WorkloadKind.SPARK:
            node = rest.partition("/")[0]  # a tenant's name may follow
            return {} if node.startswith("@") else {"node": node}  # a Spark cluster's driver is on any node
    return {}


def _rest_urls(workers: list[Worker]) -> tuple[str, ...]:
    running = [w for w in workers if w.process.state == WORKLOAD_STATE_RUNNING and w.rest_url]
    running.sort(key=lambda w: (not w.membership.joined, w.name))
    return tuple(w.rest_url.rstrip("/") for w in running)
