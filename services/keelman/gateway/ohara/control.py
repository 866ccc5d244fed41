"""The services of the state service, as the objects of this API call them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

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
from keelman.gateway.all_pages import SECONDS, all_pages
from keelman.gateway.ohara.errors import illegal_state
from keelman.model.errors import AlreadyExists, Conflict
from keelman.rpc.channels import Channel
from keelman.runtime.coalesced import Shared

T = TypeVar("T")

TRIES, PAUSE_SECONDS = 20, 0.01
"""How often what reads and writes is tried where others write too, and the longest pause, more each time."""


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
        self._shared: dict[Any, Shared[Any]] = {}

    async def ask(self, method: Any, request: Any) -> Any:
        """The answer of a unary call, with a deadline."""
        return await method(request, timeout=SECONDS)

    async def shared(self, read: Callable[[Control], Awaitable[T]]) -> T:
        """What a read returns that begins after this call; who asks for the same at the same time shares it."""
        if read not in self._shared:
            self._shared[read] = Shared(lambda: read(self))
        found: T = await self._shared[read]()
        return found

    async def all(self, method: Any, request_type: Any, field: str, **given: Any) -> list[Any]:
        """All items of a list: its pages one after another. `field` is that of the answer which has them."""
        return [item async for item in all_pages(method, request_type, field, **given)]


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """Does what reads and then writes, again where others wrote in between. Raises OharaError when they always do."""
    for number in range(TRIES):
        try:
            return await work()
        except (Conflict, AlreadyExists):
            await asyncio.sleep(random.random() * PAUSE_SECONDS * number)
    raise illegal_state("others change this at the same time: try again")


class Turns:
    """Has those that change an object one after another wait for each other here, where each would lose its races
    against all who are faster. Other gateways are met in `again`."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def take(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` returns, when its turn has come."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            return await again(work)
