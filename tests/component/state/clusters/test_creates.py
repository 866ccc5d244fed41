"""Creates over real gRPC: ports that are chosen and kept, brokers that begin stopped, and unique fields."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keelman.api.connect.v1 import broker_cluster_pb2, worker_cluster_pb2
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.api.node.v1 import node_service_pb2
from keelman.model.errors import Exhausted, FailedPrecondition, InvalidArgument, KeelmanError
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.state.service import Agent, Clients, brokers_pb, state_in_loop, workers_pb

pytestmark = pytest.mark.component
ORIGIN = {"origin_api": "ohara", "origin_scope": "g", "origin_key": "wk"}


@pytest.fixture
async def clients(tmp_path, url):
    async with state_in_loop(tmp_path, database=url, key_file=tmp_path / "secrets.key") as (state, _):
        for name in ("n1", "n2"):
            await state.nodes.CreateNode(node_service_pb2.CreateNodeRequest(name=name))
        await state.create_external("default", "127.0.0.1:1")
        yield state


async def create(clients: Clients, name: str, *, choose: bool = False, **spec: Any) -> worker_cluster_pb2.WorkerCluster:
    expected_spec = worker_cluster_pb2.WorkerClusterSpec(**{"broker_cluster": "default", "count": 1} | spec)
    request = workers_pb.CreateWorkerClusterRequest(name=name, spec=expected_spec, choose_ports=choose)
    with translated():
        return (await clients.clusters.CreateWorkerCluster(request)).worker_cluster


async def create_brokers(
    clients: Clients, name: str, *, port: int = 0, **more: Any
) -> broker_cluster_pb2.BrokerCluster:
    managed = broker_cluster_pb2.ManagedBrokers(nodes=["n1", "n2"], port=port)
    spec = broker_cluster_pb2.BrokerClusterSpec(managed=managed)
    request = brokers_pb.CreateBrokerClusterRequest(name=name, spec=spec, **more)
    with translated():
        return (await clients.brokers.CreateBrokerCluster(request)).broker_cluster


async def test_ports_are_chosen_once_and_kept(clients: Clients) -> None:
    clusters = await asyncio.gather(*(create(clients, f"w{n}", choose=True) for n in range(4)))
    ports = [port for cluster in clusters for port in (cluster.spec.port, cluster.spec.metrics_port)]
    assert len({*ports}) == 8
    assert all(10_000 <= port < 20_000 for port in ports)
    worker_cluster = await clients.worker_cluster("w0")
    assert (worker_cluster.spec.port, worker_cluster.spec.metrics_port) == tuple(ports[:2])
    named = await create(clients, "named", choose=True, port=5000, nodes=worker_cluster_pb2.WorkerNodes(names=["n1"]))
    assert named.spec.port == 5000
    assert named.spec.metrics_port >= 10_000
    assert (await create(clients, "plain")).spec.port == 0
    with pytest.raises(FailedPrecondition, match=rf"spec\.managed\.port: {ports[0]} is a port of worker cluster 'w0'"):
        await create_brokers(clients, "b", port=ports[0])


async def test_brokers_may_begin_stopped(clients: Clients) -> None:
    brokers = await create_brokers(clients, "b", stopped=True, choose_ports=True)
    assert brokers.status.state == broker_cluster_pb2.CLUSTER_STATE_STOPPED
    ports = {brokers.spec.managed.port, brokers.spec.managed.metrics_port}
    assert len(ports) == 2
    assert all(10_000 <= port < 20_000 for port in ports)
    assert not any(name.startswith("broker/") for name in await clients.workloads())
    await create(clients, "on-it", broker_cluster="b")
    with pytest.raises(FailedPrecondition) as refused, translated():
        await clients.start_workers("on-it")
    assert (refused.value.reason, refused.value.metadata) == ("BROKERS_STOPPED", {"broker_cluster": "b"})
    await clients.brokers.StartBrokerCluster(brokers_pb.StartBrokerClusterRequest(name="b"))
    assert (await clients.broker_cluster("b")).status.state == broker_cluster_pb2.CLUSTER_STATE_STARTING
    external = broker_cluster_pb2.ExternalBrokers(bootstrap_servers="127.0.0.1:1")
    spec = broker_cluster_pb2.BrokerClusterSpec(external=external)
    request = brokers_pb.CreateBrokerClusterRequest(name="ext", spec=spec, stopped=True)
    with pytest.raises(InvalidArgument, match="stopped"), translated():
        await clients.brokers.CreateBrokerCluster(request)


async def test_a_range_without_free_ports_is_told(tmp_path) -> None:
    async with state_in_loop(tmp_path, chosen_ports="10000-10002") as (clients, _):
        await clients.create_external("default", "127.0.0.1:1")
        await create(clients, "w0", choose=True)
        with pytest.raises(Exhausted, match=r"no 2 ports are free in 10000-10002") as refused:
            await create(clients, "w1", choose=True)
        assert refused.value.reason == "NO_FREE_PORTS"


HELD = {"worker_cluster": "w0", "broker_cluster": "default", **ORIGIN}
TOPICS = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")


@pytest.mark.parametrize(
    ("spec", "reason", "metadata"),
    [
        ({"port": 9000}, "PORT_IN_USE", {"kind": "worker_cluster", "name": "w0", "port": "9000", **ORIGIN}),
        ({"properties": {"group.id": "g"}}, "GROUP_IN_USE", {**HELD, "group": "g"}),
        *(
            ({"properties": {key: "t"}}, "TOPIC_IN_USE", {**HELD, "topic": "t", "property": key})
            for key in TOPICS
        ),
    ],
)  # fmt: skip
async def test_of_two_creates_at_once_one_has_it(
    tmp_path, spec: dict[str, Any], reason: str, metadata: dict[str, str]
) -> None:
    async with state_in_loop(tmp_path) as (clients, _):
        await clients.create_external("default", "127.0.0.1:1")
        origin = Origin(api="ohara", scope="g", key="wk")
        creates = [create(clients, f"w{n}", origin=None if n else origin, **spec) for n in range(4)]
        won, *lost = await asyncio.gather(*creates, return_exceptions=True)
        assert isinstance(won, worker_cluster_pb2.WorkerCluster)
        assert all(isinstance(error, FailedPrecondition) and error.reason == reason for error in lost)
        assert {tuple(sorted(error.metadata.items())) for error in lost if isinstance(error, KeelmanError)} == {
            tuple(sorted(metadata.items()))
        }
        with pytest.raises(FailedPrecondition) as refused:
            await create(clients, "other", origin=origin)
        assert refused.value.reason == "ORIGIN_IN_USE"
        assert refused.value.metadata["name"] == "w0"


async def test_the_three_topics_of_one_cluster_differ(clients: Clients) -> None:
    for key in TOPICS[1:]:
        with pytest.raises(InvalidArgument, match=key.replace(".", r"\.")):
            await create(clients, "w", properties={"config.storage.topic": "t", key: "t"})


async def test_a_node_in_use_is_not_deleted_and_says_by_whom(clients: Clients) -> None:
    async def deleted(name: str) -> KeelmanError:
        with pytest.raises(FailedPrecondition) as refused, translated():
            await clients.nodes.DeleteNode(node_service_pb2.DeleteNodeRequest(name=name))
        return refused.value

    await create(clients, "w", nodes=worker_cluster_pb2.WorkerNodes(names=["n1"]))
    await create_brokers(clients, "b", stopped=True)
    refused = await deleted("n1")
    assert refused.reason == "IN_USE"
    assert refused.metadata == {"clusters": "b, w", "broker_clusters": "b", "worker_clusters": "w"}
    async with Agent(clients, "n1"), Agent(clients, "n3"):
        assert (await deleted("n1")).reason == "IN_USE"
        assert (await deleted("n3")).reason == "NOT_OFFLINE"
    await clients.delete_workers("w")
    assert (await deleted("n2")).metadata["broker_clusters"] == "b"
    await clients.brokers.DeleteBrokerCluster(brokers_pb.DeleteBrokerClusterRequest(name="b"))
    await clients.nodes.DeleteNode(node_service_pb2.DeleteNodeRequest(name="n2"))

    async def only_external() -> bool:
        answer = await clients.brokers.ListBrokerClusters(brokers_pb.ListBrokerClustersRequest())
        return [broker_cluster.name for broker_cluster in answer.broker_clusters] == ["default"]

    await eventually(only_external, what="the cluster is gone without its nodes")
