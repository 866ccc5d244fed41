"""Connectors, as workers have reported them; they are no resources of the state service's own."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.api.connect.v1 import connector_report_service_pb2 as pb
from keelman.api.connect.v1 import connector_report_service_pb2_grpc as grpc
from keelman.model.cluster import ClusterState
from keelman.model.errors import InvalidArgument
from keelman.model.workload import WorkloadKind
from keelman.rpc.pages import LARGEST_SIZE
from keelman.rpc.server import Context
from keelman.state.resources.noun import Parts
from keelman.state.snapshot import WORKER_CLUSTER

ENDED = (ClusterState.STOPPED, ClusterState.STOPPING, ClusterState.DELETING)


@dataclass(frozen=True, slots=True)
class ConnectorReportApi(grpc.ConnectorReportServiceServicer):
    """Lists of connectors that ask no worker."""

    parts: Parts

    async def ListConnectorReports(
        self, request: pb.ListConnectorReportsRequest, context: Context
    ) -> pb.ListConnectorReportsResponse:
        """A page of what was reported. Raises NotFound for an unknown worker cluster, InvalidArgument for more names
        than a page has."""
        if len(request.connectors) > LARGEST_SIZE:
            raise InvalidArgument.of("connectors", len(request.connectors), f"at most {LARGEST_SIZE}")
        snapshot, known = self.parts.store.snapshot, self.parts.reports
        if request.worker_cluster:
            snapshot.worker_cluster(request.worker_cluster)
        running = [n for n in snapshot.names(WORKER_CLUSTER) if snapshot.worker_clusters[n].status.state not in ENDED]
        reported = [n for n in running if request.worker_cluster in ("", n) and known.connectors.reported(n)]
        asked = [request.worker_cluster] if request.worker_cluster else running
        if request.connectors:
            part, token = known.connectors.these(request.connectors, reported, request.state), ""
        else:
            part, token = known.connectors.page(reported, request.state, request.page_size, request.page_token)
        told = set(reported)
        unreported = [n for n in asked if n not in told]
        workers = {c.worker_cluster: snapshot.workloads_in(WorkloadKind.WORKER, c.worker_cluster) for c in part}
        part = [known.with_lag(one, workers[one.worker_cluster]) for one in part]
        return pb.ListConnectorReportsResponse(connectors=part, next_page_token=token, unreported=unreported)


API = ConnectorReportApi
