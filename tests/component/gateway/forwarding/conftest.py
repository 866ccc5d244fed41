"""A running system with one worker cluster, and clients of its gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.node.v1 import node_service_pb2 as nodes
from keelman.api.node.v1.node_pb2 import NODE_STATE_ONLINE
from keelman.api.node.v1.node_service_pb2_grpc import NodeServiceStub
from keelman.rpc.channels import Channel, channel
from support.eventually import eventually
from support.gateway.system import System, running_system
from support.gateway.worker_clusters import started_cluster


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with running_system(tmp_path_factory.mktemp("system")) as system:
        async with channel(system.gateway.address) as to:
            node = NodeServiceStub(to)

            async def online() -> bool:
                actual_nodes = (await node.ListNodes(nodes.ListNodesRequest())).nodes
                return [n.status.state for n in actual_nodes] == [NODE_STATE_ONLINE] * 2

            await eventually(online)
            spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1"))
            request = brokers.CreateBrokerClusterRequest(name="outside", spec=spec)
            await BrokerClusterServiceStub(to).CreateBrokerCluster(request)
        yield system


@pytest_asyncio.fixture(scope="module")
async def gateway(system: System) -> AsyncIterator[Channel]:
    async with channel(system.gateway.address) as to:
        yield to


@pytest_asyncio.fixture(scope="module")
async def http(system: System) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=300) as client:
        yield client


@pytest_asyncio.fixture(scope="module")
async def demo(gateway: Channel) -> str:
    await started_cluster(gateway, "demo")
    return "demo"
