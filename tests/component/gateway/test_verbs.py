"""The verbs of nodes and clusters through the gateway, on a real state service: masks, etags, request ids, refusals."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from google.protobuf.field_mask_pb2 import FieldMask

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import worker_cluster_pb2
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers, ManagedBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.origin_pb2 import Origin
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterSpec, WorkerNodes
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.api.node.v1 import node_service_pb2 as nodes
from keelman.api.node.v1.node_pb2 import NODE_STATE_EXPECTED, NODE_STATE_ONLINE, NodeSpec
from keelman.api.node.v1.node_service_pb2_grpc import NodeServiceStub
from keelman.model.errors import AlreadyExists, Conflict, FailedPrecondition, InvalidArgument, NotFound
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.gateway.system import running_system
from support.places import ROOT

pytestmark = pytest.mark.component


class Stubs:
    """The services of one address."""

    def __init__(self, to: Any, address: str) -> None:
        self.address = address
        self.nodes = NodeServiceStub(to)
        self.brokers = BrokerClusterServiceStub(to)
        self.clusters = WorkerClusterServiceStub(to)

    async def cluster(self, name: str) -> WorkerCluster:
        return (await self.clusters.GetWorkerCluster(clusters.GetWorkerClusterRequest(name=name))).worker_cluster

    async def create(self, name: str, **spec: Any) -> WorkerCluster:
        expected_spec = WorkerClusterSpec(**{"broker_cluster": "outside", "count": 1} | spec)
        answer = await self.clusters.CreateWorkerCluster(
            clusters.CreateWorkerClusterRequest(name=name, spec=expected_spec)
        )
        return answer.worker_cluster

    async def update(self, name: str, *mask: str, etag: str = "", request_id: str = "", **spec: Any) -> WorkerCluster:
        request = clusters.UpdateWorkerClusterRequest(
            name=name,
            etag=etag,
            request_id=request_id,
            spec=WorkerClusterSpec(**spec),
            update_mask=FieldMask(paths=mask),
        )
        return (await self.clusters.UpdateWorkerCluster(request)).worker_cluster


@pytest_asyncio.fixture(scope="module")
async def stubs(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stubs]:
    async with (
        running_system(tmp_path_factory.mktemp("system")) as system,
        channel(system.gateway.address) as to,
    ):
        actual_stubs = Stubs(to, system.gateway.address)

        async def both_nodes() -> bool:
            here = (await actual_stubs.nodes.ListNodes(nodes.ListNodesRequest())).nodes
            return [node.status.state for node in here] == [NODE_STATE_ONLINE] * 2

        await eventually(both_nodes)
        spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1"))
        await actual_stubs.brokers.CreateBrokerCluster(brokers.CreateBrokerClusterRequest(name="outside", spec=spec))
        yield actual_stubs


async def test_only_what_the_mask_names_is_changed(stubs: Stubs) -> None:
    first = await stubs.create("masked", properties={"a": "1"}, labels={"team": "blue"}, description="first")
    second = await stubs.update("masked", "description", "labels", description="second", properties={"b": "2"})
    assert (second.spec.description, dict(second.spec.labels)) == ("second", {})
    assert dict(second.spec.properties) == {"a": "1"}
    assert (second.generation > first.generation, second.etag != first.etag) == (True, True)
    assert second.uid == first.uid
    same = await stubs.update("masked", "description", description="second")
    assert (same.generation, same.etag) == (second.generation, second.etag), "nothing was to be changed"
    whole = WorkerClusterSpec(broker_cluster="outside", count=2)
    request = clusters.UpdateWorkerClusterRequest(name="masked", spec=whole)
    third = (await stubs.clusters.UpdateWorkerCluster(request)).worker_cluster
    whole.engine = worker_cluster_pb2.WORKER_ENGINE_KEELMAN
    assert third.spec == whole, "no mask: the whole spec"


async def test_a_placement_takes_the_place_of_the_other(stubs: Stubs) -> None:
    await stubs.create("placed")
    pinned = await stubs.update("placed", "nodes", nodes=WorkerNodes(names=["node-2"]))
    assert (pinned.spec.WhichOneof("placement"), pinned.status.wanted_workers) == ("nodes", 1)
    counted = await stubs.update("placed", "count", count=2)
    assert (counted.spec.WhichOneof("placement"), counted.status.wanted_workers) == ("count", 2)


async def test_an_etag_that_is_out_of_date_is_refused_by_every_write(stubs: Stubs) -> None:
    old = (await stubs.create("dated")).etag
    new = (await stubs.update("dated", "description", etag=old, description="x")).etag
    with pytest.raises(Conflict, match=old):
        await stubs.update("dated", "description", etag=old, description="y")
    for verb in ("Start", "Stop", "Delete"):
        request = getattr(clusters, f"{verb}WorkerClusterRequest")(name="dated", etag=old)
        with pytest.raises(Conflict):
            await getattr(stubs.clusters, f"{verb}WorkerCluster")(request)
    assert (await stubs.cluster("dated")).etag == new
    node = (await stubs.nodes.GetNode(nodes.GetNodeRequest(name="node-1"))).node
    spec, mask = NodeSpec(labels={"a": "1"}), FieldMask(paths=["labels"])
    await stubs.nodes.UpdateNode(nodes.UpdateNodeRequest(name="node-1", spec=spec, update_mask=mask))
    with pytest.raises(Conflict):
        await stubs.nodes.CordonNode(nodes.CordonNodeRequest(name="node-1", etag=node.etag))


async def test_a_repeated_request_gets_the_first_answer(stubs: Stubs) -> None:
    await stubs.create("repeated")
    first = await stubs.update("repeated", "description", request_id="u-1", description="first")
    await stubs.update("repeated", "description", description="second")
    assert await stubs.update("repeated", "description", request_id="u-1", description="first") == first
    assert (await stubs.cluster("repeated")).spec.description == "second", "it was not done twice"
    with pytest.raises(InvalidArgument, match="this one was used for UpdateWorkerCluster"):
        await stubs.clusters.StopWorkerCluster(clusters.StopWorkerClusterRequest(name="repeated", request_id="u-1"))
    delete = clusters.DeleteWorkerClusterRequest(name="repeated", request_id="u-2")
    gone = await stubs.clusters.DeleteWorkerCluster(delete)

    async def is_gone() -> bool:
        try:
            await stubs.cluster("repeated")
        except NotFound:
            return True
        return False

    await eventually(is_gone)
    assert await stubs.clusters.DeleteWorkerCluster(delete) == gone


@pytest.mark.parametrize(
    ("mask", "spec", "error", "message"),
    [
        ("cuont", {}, InvalidArgument, r"update_mask: 'cuont' is not legal: fields of the spec: .*count"),
        ("status", {}, InvalidArgument, "update_mask: 'status'"),
        ("broker_cluster", {"broker_cluster": "other"}, InvalidArgument, r"spec\.broker_cluster: 'other' is not legal"),
        ("origin", {"origin": Origin(api="x", key="y")}, InvalidArgument, r"spec\.origin: .* cannot be changed"),
        ("count", {"count": 0}, InvalidArgument, r"spec\.count: 0 is not legal"),
        ("nodes", {"nodes": WorkerNodes(names=["node-1", "node-1"])}, InvalidArgument, "each node once"),
        ("nodes", {"nodes": WorkerNodes(names=["nosuch"])}, InvalidArgument, "'nosuch'"),
        ("reserved_ports", {"reserved_ports": [7, 7]}, InvalidArgument, r"spec\.reserved_ports\[1\]: 7"),
        ("properties", {"properties": {"listeners": "x"}}, InvalidArgument, r"listeners: .* leave it out"),
        ("properties", {"properties": {"group.id": "keelman-neighbour"}}, FailedPrecondition, "neighbour"),
    ],
)
async def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    stubs: Stubs, mask: str, spec: dict[str, Any], error: type[Exception], message: str
) -> None:
    for name in ("refused", "neighbour"):
        try:
            await stubs.create(name)
        except AlreadyExists:
            continue
    before = await stubs.cluster("refused")
    with pytest.raises(error, match=message):
        await stubs.update("refused", mask, **spec)
    assert await stubs.cluster("refused") == before


async def test_a_broker_cluster_keeps_its_kind(stubs: Stubs) -> None:
    spec = BrokerClusterSpec(managed=ManagedBrokers(nodes=["node-1"]))
    mask = FieldMask(paths=["managed"])
    request = brokers.UpdateBrokerClusterRequest(name="outside", spec=spec, update_mask=mask)
    with pytest.raises(InvalidArgument, match=r"spec\.kind: 'managed' is not legal"):
        await stubs.brokers.UpdateBrokerCluster(request)
    spec = BrokerClusterSpec(labels={"site": "here"})
    request = brokers.UpdateBrokerClusterRequest(name="outside", spec=spec, update_mask=FieldMask(paths=["labels"]))
    broker_cluster = (await stubs.brokers.UpdateBrokerCluster(request)).broker_cluster
    assert (dict(broker_cluster.spec.labels), broker_cluster.spec.external.bootstrap_servers) == (
        {"site": "here"},
        "127.0.0.1:1",
    )


async def test_a_node_is_created_cordoned_drained_and_forgotten(stubs: Stubs) -> None:
    spec = NodeSpec(description="to come", labels={"disk": "ssd"})
    create = nodes.CreateNodeRequest(name="node-9", spec=spec, request_id="n-1")
    node = (await stubs.nodes.CreateNode(create)).node
    assert (node.status.state, node.spec) == (NODE_STATE_EXPECTED, spec)
    assert (await stubs.nodes.CreateNode(create)).node == node
    with pytest.raises(AlreadyExists):
        await stubs.nodes.CreateNode(nodes.CreateNodeRequest(name="node-9"))
    cordoned = (await stubs.nodes.CordonNode(nodes.CordonNodeRequest(name="node-9"))).node
    drained = (await stubs.nodes.DrainNode(nodes.DrainNodeRequest(name="node-9"))).node
    free = (await stubs.nodes.UncordonNode(nodes.UncordonNodeRequest(name="node-9"))).node
    assert [(n.spec.cordoned, n.spec.draining) for n in (cordoned, drained, free)] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert [n.generation for n in (node, cordoned, drained, free)] == [1, 2, 3, 4]
    await stubs.nodes.DeleteNode(nodes.DeleteNodeRequest(name="node-9", etag=free.etag))
    with pytest.raises(NotFound, match="node-9"):
        await stubs.nodes.GetNode(nodes.GetNodeRequest(name="node-9"))


async def test_the_documented_client_changes_a_property(stubs: Stubs) -> None:
    await stubs.create("demo", properties={"a": "1"})
    text = (ROOT / "docs" / "grpc.md").read_text()
    (code,) = (part.partition("```")[0] for part in text.split("```python\n")[1:] if "UpdateWorkerCluster" in part)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code.replace("127.0.0.1:7400", stubs.address)), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(300):
        out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"2\n")
    spec = (await stubs.cluster("demo")).spec
    assert dict(spec.properties) == {"a": "1", "offset.flush.interval.ms": "5000"}
