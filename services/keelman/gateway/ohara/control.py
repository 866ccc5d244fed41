"""The services of the state service, as the objects of this API call them."""

from __future__ import annotations

from typing import Any

from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.connector_definition_service_pb2_grpc import ConnectorDefinitionServiceStub
from keelman.api.connect.v1.connector_report_service_pb2_grpc import ConnectorReportServiceStub
from keelman.api.connect.v1.document_service_pb2_grpc import DocumentServiceStub
from keelman.api.connect.v1.operation_service_pb2_grpc import OperationServiceStub
from keelman.api.connect.v1.plugin_service_pb2_grpc import PluginServiceStub
from keelman.api.connect.v1.topic_service_pb2_grpc import TopicServiceStub
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.api.connect.v1.worker_service_pb2_grpc import WorkerServiceStub
from keelman.api.node.v1.node_service_pb2_grpc import NodeServiceStub
from keelman.api.node.v1.workload_service_pb2_grpc import WorkloadServiceStub
from keelman.rpc.channels import Channel

PAGE = 1000
SECONDS = 10.0
"""Deadline of one call."""


class Control:
    """Stubs on the gateway's channel to the state service. Calls raise the errors of keelman.model.errors."""

    def __init__(self, channel: Channel) -> None:
        self.worker_clusters: Any = WorkerClusterServiceStub(channel)
        self.workers: Any = WorkerServiceStub(channel)
        self.broker_clusters: Any = BrokerClusterServiceStub(channel)
        self.nodes: Any = NodeServiceStub(channel)
        self.workloads: Any = WorkloadServiceStub(channel)
        self.plugins: Any = PluginServiceStub(channel)
        self.definitions: Any = ConnectorDefinitionServiceStub(channel)
        self.reports: Any = ConnectorReportServiceStub(channel)
        self.operations: Any = OperationServiceStub(channel)
        self.topics: Any = TopicServiceStub(channel)
        self.documents: Any = DocumentServiceStub(channel)

    async def ask(self, method: Any, request: Any) -> Any:
        """The answer of a unary call, with a deadline."""
        return await method(request, timeout=SECONDS)

    async def all(self, method: Any, request_type: Any, field: str, **given: Any) -> list[Any]:
        """All items of a list: its pages one after another. `field` is that of the answer which has them."""
        found: list[Any] = []
        token = ""
        while True:
            answer = await self.ask(method, request_type(page_size=PAGE, page_token=token, **given))
            found += getattr(answer, field)
            token = answer.next_page_token
            if not token:
                return found
