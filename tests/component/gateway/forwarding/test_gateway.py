"""The gateway before a real state service, with workers that answer Connect's REST API over real HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import pytest_asyncio
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import connector_definition_service_pb2 as definitions
from keelman.api.connect.v1 import connector_service_pb2 as connectors
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1 import worker_service_pb2 as workers
from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.connector_definition_pb2 import DEFINITION_GOAL_RUNNING, ConnectorDefinitionSpec
from keelman.api.connect.v1.connector_definition_service_pb2_grpc import ConnectorDefinitionServiceStub
from keelman.api.connect.v1.connector_pb2 import (
    CONNECTOR_STATE_FAILED,
    CONNECTOR_STATE_PAUSED,
    CONNECTOR_STATE_RUNNING,
    CONNECTOR_STATE_UNASSIGNED,
    CONNECTOR_TYPE_SOURCE,
    Connector,
)
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.connect.v1.operation_service_pb2 import (
    DeleteOperationRequest,
    GetOperationRequest,
    ListOperationsRequest,
)
from keelman.api.connect.v1.operation_service_pb2_grpc import OperationServiceStub
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.api.connect.v1.worker_cluster_service_pb2_grpc import WorkerClusterServiceStub
from keelman.api.connect.v1.worker_service_pb2_grpc import WorkerServiceStub
from keelman.api.copy.v1 import copy_run_service_pb2 as runs
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.api.node.v1 import agent_service_pb2 as agent
from keelman.api.node.v1 import node_service_pb2 as nodes
from keelman.api.node.v1 import workload_service_pb2 as workloads
from keelman.api.node.v1.agent_service_pb2_grpc import AgentServiceStub
from keelman.api.node.v1.node_pb2 import NODE_STATE_ONLINE
from keelman.api.node.v1.node_service_pb2_grpc import NodeServiceStub
from keelman.api.node.v1.workload_pb2 import WORKLOAD_STATE_RUNNING
from keelman.api.node.v1.workload_service_pb2_grpc import WorkloadServiceStub
from keelman.model.errors import (
    AlreadyExists,
    Conflict,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from keelman.rpc.channels import Channel, channel
from keelman.rpc.errors import translated, translated_stream
from keelman.runtime.processes.ports import free_ports
from keelman.testing.eventually import eventually
from support.gateway.system import LIST_SECONDS, OLD, Process, System, running_system

pytestmark = pytest.mark.component
FILE_SOURCE = {"connector.class": "FileStreamSource", "file": "/data/in", "topic": "t"}


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with running_system(tmp_path_factory.mktemp("system")) as made:
        async with channel(made.gateway.address) as to:
            node = NodeServiceStub(to)

            async def online() -> bool:
                found = (await node.ListNodes(nodes.ListNodesRequest())).nodes
                return [n.status.state for n in found] == [NODE_STATE_ONLINE] * 2

            await eventually(online)
            spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1"))
            request = brokers.CreateBrokerClusterRequest(name="outside", spec=spec)
            await BrokerClusterServiceStub(to).CreateBrokerCluster(request)
        yield made


@pytest_asyncio.fixture(scope="module")
async def gateway(system: System) -> AsyncIterator[Channel]:
    async with channel(system.gateway.address) as to:
        yield to


@pytest_asyncio.fixture(scope="module")
async def http(system: System) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=system.http, trust_env=False, timeout=60) as client:
        yield client


async def started_cluster(gateway: Channel, name: str, count: int = 1) -> None:
    stub = WorkerClusterServiceStub(gateway)
    spec = WorkerClusterSpec(broker_cluster="outside", count=count)
    await stub.CreateWorkerCluster(clusters.CreateWorkerClusterRequest(name=name, spec=spec))
    await stub.StartWorkerCluster(clusters.StartWorkerClusterRequest(name=name))

    async def runs_all() -> bool:
        found = await WorkerServiceStub(gateway).ListWorkers(workers.ListWorkersRequest(worker_cluster=name))
        return [w.process.state for w in found.workers] == [WORKLOAD_STATE_RUNNING] * count

    await eventually(runs_all)


async def deleted_cluster(gateway: Channel, name: str) -> None:
    stub = WorkerClusterServiceStub(gateway)
    await stub.DeleteWorkerCluster(clusters.DeleteWorkerClusterRequest(name=name))

    async def gone() -> bool:
        return name not in [
            c.name for c in (await stub.ListWorkerClusters(clusters.ListWorkerClustersRequest())).worker_clusters
        ]

    await eventually(gone)


@pytest_asyncio.fixture(scope="module")
async def demo(gateway: Channel) -> str:
    await started_cluster(gateway, "demo")
    return "demo"


async def test_reads_are_the_state_services_own(system: System, gateway: Channel, demo: str) -> None:
    async with channel(system.state.address) as state:
        for stub, ask in (
            (NodeServiceStub, lambda s: s.ListNodes(nodes.ListNodesRequest(page_size=1))),
            (WorkloadServiceStub, lambda s: s.ListWorkloads(workloads.ListWorkloadsRequest(node="node-1"))),
            (BrokerClusterServiceStub, lambda s: s.GetBrokerCluster(brokers.GetBrokerClusterRequest(name="outside"))),
            (WorkerClusterServiceStub, lambda s: s.GetWorkerCluster(clusters.GetWorkerClusterRequest(name=demo))),
            (WorkerServiceStub, lambda s: s.GetWorker(workers.GetWorkerRequest(name="demo/0"))),
            (CopyRunServiceStub, lambda s: s.ListCopyRuns(runs.ListCopyRunsRequest())),
        ):

            async def same(stub: Any = stub, ask: Any = ask) -> bool:  # heartbeats may come between the two
                here, there = await ask(stub(gateway)), await ask(stub(state))
                for node in [*getattr(here, "nodes", ()), *getattr(there, "nodes", ())]:
                    node.status.ClearField("heartbeat_time")
                return bool(here == there)

            await eventually(same, what=stub.__name__)


async def test_errors_are_the_state_services_own(system: System, gateway: Channel) -> None:
    request = clusters.GetWorkerClusterRequest(name="nobody")
    seen = []
    async with channel(system.state.address) as state:
        for to in (gateway, state):
            with pytest.raises(NotFound) as caught:
                await WorkerClusterServiceStub(to).GetWorkerCluster(request)
            seen.append((caught.value.message, caught.value.reason, caught.value.metadata))
    assert seen[0] == seen[1]
    assert "nobody" in seen[0][0]


async def test_what_needs_no_state_is_refused_at_the_gateway(gateway: Channel) -> None:
    with pytest.raises(InvalidArgument, match=r"name: 'Bad Name' is not legal"):
        await WorkerClusterServiceStub(gateway).GetWorkerCluster(clusters.GetWorkerClusterRequest(name="Bad Name"))
    with pytest.raises(InvalidArgument, match="page_size: 1001"):
        await ConnectorServiceStub(gateway).ListConnectors(connectors.ListConnectorsRequest(page_size=1001))
    unknown = connectors.ListConnectorsRequest.FromString(b"\x20\x4d")
    with pytest.raises(InvalidArgument, match="state: 77 is not legal: one of CONNECTOR_STATE_UNSPECIFIED, "):
        await ConnectorServiceStub(gateway).ListConnectors(unknown)
    with pytest.raises(InvalidArgument, match="state: 77 is not legal: one of OPERATION_STATE_UNSPECIFIED, "):
        await OperationServiceStub(gateway).ListOperations(ListOperationsRequest.FromString(b"\x28\x4d"))


async def test_a_watch_begins_with_a_snapshot(gateway: Channel) -> None:
    call = CopyRunServiceStub(gateway).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=30)
    first = await call.read()
    assert first.snapshot
    call.cancel()


async def test_reflection_names_every_service(gateway: Channel) -> None:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(gateway)

    async def ask() -> AsyncIterator[Any]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        yield reflection_pb2.ServerReflectionRequest(file_containing_symbol="keelman.api.node.v1.NodeService")

    answers = [a async for a in stub.ServerReflectionInfo(ask(), timeout=30)]
    names = {s.name.rpartition(".")[2] for s in answers[0].list_services_response.service}
    assert names == {
        "NodeService", "WorkloadService", "BrokerClusterService", "WorkerClusterService", "WorkerService",
        "PlanService", "PluginService", "CopyRunService", "ConnectorService", "ConnectorDefinitionService",
        "OperationService", "TopicService", "DocumentService", "AgentService", "WatchService", "Health",
        "DedicatedConnectorService", "WorkerConfigurationService", "PluginImportService", "SecretService",
        "BatchService", "JoinService", "JoinTokenService",
        "ServerReflection",
    }  # fmt: skip
    assert answers[1].file_descriptor_response.file_descriptor_proto


async def test_a_definition_is_applied(system: System, gateway: Channel, demo: str) -> None:
    stub, operations = ConnectorDefinitionServiceStub(gateway), OperationServiceStub(gateway)
    spec = ConnectorDefinitionSpec(worker_cluster=demo, connector="defined here", config=FILE_SOURCE)
    no_cluster = ConnectorDefinitionSpec(config=FILE_SOURCE)
    for name, given, field in (("Not Legal", spec, "name"), ("defined", no_cluster, "spec.worker_cluster")):
        request = definitions.CreateConnectorDefinitionRequest(name=name, spec=given)
        with translated(), pytest.raises(InvalidArgument, match=f"^{field}: "):
            await stub.CreateConnectorDefinition(request)
    await stub.CreateConnectorDefinition(definitions.CreateConnectorDefinitionRequest(name="defined", spec=spec))
    request = definitions.ApplyConnectorDefinitionRequest(name="defined", goal=DEFINITION_GOAL_RUNNING)
    begun = (await stub.ApplyConnectorDefinition(request)).operation

    async def failed() -> bool:
        found = (await operations.GetOperation(GetOperationRequest(name=begun.name))).operation
        return found.error.message == "task 0 failed: java.lang.Oops"

    await eventually(failed, what="what the workers answer is told")
    assert system.connectors[demo]["defined here"] == FILE_SOURCE | {"name": "defined here"}
    listed = (await operations.ListOperations(ListOperationsRequest(target=begun.target))).operations
    assert [one.name for one in listed] == [begun.name]
    await operations.DeleteOperation(DeleteOperationRequest(name=begun.name))
    request = definitions.DeleteConnectorDefinitionRequest(name="defined", keep_connector=True)
    await stub.DeleteConnectorDefinition(request)
    with translated(), pytest.raises(NotFound, match="no connector definition is named 'defined'"):
        await stub.GetConnectorDefinition(definitions.GetConnectorDefinitionRequest(name="defined"))
    del system.connectors[demo]["defined here"]


async def test_a_connectors_life(system: System, gateway: Channel, demo: str) -> None:
    stub = ConnectorServiceStub(gateway)
    named = {"worker_cluster": demo, "name": "a/b c%"}
    made = await stub.CreateConnector(connectors.CreateConnectorRequest(**named, config=FILE_SOURCE))
    found = (await stub.GetConnector(connectors.GetConnectorRequest(**named))).connector
    worker = system.worker("worker/demo/0")
    assert made.connector == found
    assert found.config == FILE_SOURCE | {"name": "a/b c%"}
    assert (found.type, found.state, found.worker_id) == (
        CONNECTOR_TYPE_SOURCE,
        CONNECTOR_STATE_RUNNING,
        worker.url.removeprefix("http://"),
    )
    [task] = found.tasks
    assert (task.task, task.state, task.trace) == (0, CONNECTOR_STATE_FAILED, "java.lang.Oops")
    changed = await stub.UpdateConnector(
        connectors.UpdateConnectorRequest(**named, config=FILE_SOURCE | {"topic": "u"})
    )
    assert changed.connector.config["topic"] == "u"
    before = len(worker.asked)
    await stub.PauseConnector(connectors.PauseConnectorRequest(**named))
    await stub.ResumeConnector(connectors.ResumeConnectorRequest(**named))
    await stub.StopConnector(connectors.StopConnectorRequest(**named))
    await stub.RestartConnector(connectors.RestartConnectorRequest(**named))
    await stub.RestartConnector(connectors.RestartConnectorRequest(**named, include_tasks=True, only_failed=True))
    path = b"/connectors/a%2Fb%20c%25"
    assert worker.asked[before:] == [
        ("PUT", path + b"/pause"),
        ("PUT", path + b"/resume"),
        ("PUT", path + b"/stop"),
        ("POST", path + b"/restart"),
        ("POST", path + b"/restart?includeTasks=true&onlyFailed=true"),
    ]
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(**named))
    with pytest.raises(NotFound, match="Connector a/b c% not found"):
        await stub.GetConnector(connectors.GetConnectorRequest(**named))


async def test_a_connector_without_a_status_yet_is_unassigned(system: System, gateway: Channel, demo: str) -> None:
    system.connectors[demo]["young"] = FILE_SOURCE | {"young": "1"}
    found = await ConnectorServiceStub(gateway).GetConnector(
        connectors.GetConnectorRequest(worker_cluster=demo, name="young")
    )
    assert (found.connector.state, found.connector.tasks[0].state) == (CONNECTOR_STATE_UNASSIGNED,) * 2
    del system.connectors[demo]["young"]


async def test_a_repeated_create_gets_what_the_first_one_made(gateway: Channel, demo: str) -> None:
    stub = ConnectorServiceStub(gateway)
    named = {"worker_cluster": demo, "name": "repeated"}
    create = connectors.CreateConnectorRequest(**named, config=FILE_SOURCE, request_id="r-1")
    first = (await stub.CreateConnector(create)).connector
    changed = await stub.UpdateConnector(connectors.UpdateConnectorRequest(**named, config=FILE_SOURCE | {"a": "b"}))
    again = (await stub.CreateConnector(create)).connector
    assert first.uid
    assert again == changed.connector, "as it is now"
    assert again.uid == first.uid
    create.request_id = "r-2"
    with pytest.raises(AlreadyExists, match="Connector repeated already exists"):
        await stub.CreateConnector(create)
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(**named))
    assert (await stub.CreateConnector(create)).connector.uid not in ("", first.uid), "another one of its name"
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(**named))
    for wrong in ("r\n", "ü", "r" * 129):
        create.request_id = wrong
        with pytest.raises(InvalidArgument, match=r"request_id: .* at most 128 printable characters of ASCII"):
            await stub.CreateConnector(create)


async def test_connects_refusals_come_as_statuses(system: System, gateway: Channel, demo: str) -> None:
    stub = ConnectorServiceStub(gateway)
    worker = system.worker("worker/demo/0")
    create = connectors.CreateConnectorRequest(worker_cluster=demo, name="twice", config=FILE_SOURCE)
    await stub.CreateConnector(create)
    with pytest.raises(AlreadyExists, match="Connector twice already exists"):
        await stub.CreateConnector(create)
    with pytest.raises(InvalidArgument, match="contains no connector type"):
        await stub.CreateConnector(connectors.CreateConnectorRequest(worker_cluster=demo, name="new"))
    with pytest.raises(NotFound, match="Connector none not found"):
        await stub.UpdateConnector(connectors.UpdateConnectorRequest(worker_cluster=demo, name="none"))
    for refusal, cls in (((409, "because a rebalance was underway."), Conflict), ((500, "Oops"), Internal)):
        worker.refusal = refusal
        with pytest.raises(cls, match=refusal[1]):
            await stub.CreateConnector(create)
    worker.refusal = (412, "not the one that If-Match names")
    with pytest.raises(Conflict, match=r"etag: .*old.* is not the present one"):
        await stub.DeleteConnector(connectors.DeleteConnectorRequest(worker_cluster=demo, name="twice", etag='"old"'))
    worker.refusal = None
    with pytest.raises(NotFound, match="nobody"):
        await stub.GetConnector(connectors.GetConnectorRequest(worker_cluster="nobody", name="x"))
    with pytest.raises(InvalidArgument, match="name"):
        await stub.GetConnector(connectors.GetConnectorRequest(worker_cluster=demo))
    await stub.DeleteConnector(connectors.DeleteConnectorRequest(worker_cluster=demo, name="twice"))


async def test_lists_cover_all_clusters_and_name_the_unreachable(system: System, gateway: Channel, demo: str) -> None:
    for name in ("dead", "frozen"):
        await started_cluster(gateway, name)
    system.connectors[demo] |= {f"c{i}": FILE_SOURCE for i in range(3)}
    await system.node_of("worker/dead/0").close("worker/dead/0")
    system.worker("worker/frozen/0").frozen = True
    stub = ConnectorServiceStub(gateway)
    seen: list[Connector] = []
    unreachable: dict[str, str] = {}
    token = ""
    while True:
        answer = await stub.ListConnectors(connectors.ListConnectorsRequest(page_size=2, page_token=token))
        unreachable |= answer.unreachable
        seen += answer.connectors
        token = answer.next_page_token
        if not token:
            break
    assert [(c.worker_cluster, c.name) for c in seen] == [(demo, "c0"), (demo, "c1"), (demo, "c2")]
    assert {c.state for c in seen} == {CONNECTOR_STATE_RUNNING}
    assert set(unreachable) == {"dead", "frozen"}
    assert "dead" not in answer.unreachable, "its connectors would have been on the first page"
    assert "worker/dead/0" not in unreachable["dead"]
    assert system.worker("worker/dead/0").url in unreachable["dead"]
    assert unreachable["frozen"] == f"no answer within {LIST_SECONDS} s"
    one = await stub.ListConnectors(connectors.ListConnectorsRequest(worker_cluster=demo))
    assert (len(one.connectors), dict(one.unreachable)) == (3, {})
    for state, count in (
        (CONNECTOR_STATE_RUNNING, 3),
        (CONNECTOR_STATE_FAILED, 3),
        (CONNECTOR_STATE_PAUSED, 0),
    ):  # a task of each has failed
        some = await stub.ListConnectors(connectors.ListConnectorsRequest(worker_cluster=demo, state=state))
        assert len(some.connectors) == count
    with pytest.raises(NotFound):
        await stub.ListConnectors(connectors.ListConnectorsRequest(worker_cluster="nobody"))
    system.connectors[demo].clear()
    for name in ("dead", "frozen"):
        await deleted_cluster(gateway, name)


async def test_logs_come_from_whichever_node_runs_the_workload(system: System, gateway: Channel, demo: str) -> None:
    stub = AgentServiceStub(gateway)
    node = system.node_of("worker/demo/0")
    request = agent.StreamLogsRequest(workload="worker/demo/0", tail_lines=2, follow=True)
    call = stub.StreamLogs(request, timeout=30)
    assert (await call.read()).lines == b"line 198\nline 199\n"
    node.more_logs.set()
    assert (await call.read()).lines == b"new line\n"
    assert await call.read() is grpc.aio.EOF
    node.more_logs.clear()
    call = stub.StreamLogs(request, timeout=30)
    await call.read()
    assert node.readers == 1
    call.cancel()
    await eventually(lambda: node.readers == 0)
    with pytest.raises(NotFound, match="worker/none/0"), translated():
        await stub.StreamLogs(agent.StreamLogsRequest(workload="worker/none/0"), timeout=30).read()
    with pytest.raises(NotFound, match="has no log of 'spark/"):
        [_ async for _ in translated_stream(stub.StreamLogs(agent.StreamLogsRequest(workload=f"spark/{node.name}")))]
    with pytest.raises(PermissionDenied, match="Drain is not offered"):
        await stub.Drain(agent.DrainRequest())


async def test_the_proxy_changes_nothing(http: httpx.AsyncClient, demo: str) -> None:
    body = os.urandom(3_000_000)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    for content in (body, pieces()):
        answer = await http.request(
            "PATCH",
            f"/clusters/{demo}/echo/a%2Fb%20c/%C3%BC;v=1?x=%2F&x=2&flag",
            content=content,
            headers=[
                ("X-Two", "1"),
                ("X-Two", "2"),
                ("Authorization", "Basic eA=="),
                ("Connection", "X-Hop"),
                ("X-Hop", "1"),
            ],
        )
        assert answer.status_code == 299
        told = answer.json()
        assert told["method"] == "PATCH"
        assert told["target"] == "/echo/a%2Fb%20c/%C3%BC;v=1?x=%2F&x=2&flag"
        assert (told["size"], told["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())
        headers = [(k, v) for k, v in told["headers"] if k not in ("host", "content-length", "transfer-encoding")]
        assert headers == [
            (k.lower(), v)
            for k, v in answer.request.headers.multi_items()
            if k.lower() not in ("host", "content-length", "transfer-encoding", "connection", "x-hop")
        ]
        assert answer.headers.get_list("x-answer") == ["1", "2"]
        assert "x-hop" not in answer.headers
        assert sorted(answer.headers) == ["age", "content-length", "content-type", "warning", "x-answer"]
        assert {key.encode(): answer.headers[key].encode() for key in ("age", "warning")} == dict(OLD)


async def test_the_proxy_sends_dots_and_no_body_as_they_are(system: System, demo: str) -> None:
    answer = await raw_http(
        system, b"DELETE /clusters/demo/echo/../x//%2e%2e/ HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n"
    )
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert told["target"] == "/echo/../x//%2e%2e/?"
    assert {k for k, _ in told["headers"]} == {"host"}


async def drained(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def raw_http(system: System, request: bytes) -> bytes:
    host, _, port = system.http.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return answer


async def test_answers_stream_as_they_come(system: System, http: httpx.AsyncClient, demo: str) -> None:
    worker = system.worker("worker/demo/0")
    async with http.stream("GET", f"/clusters/{demo}/stream") as answer:
        pieces = answer.aiter_raw()
        assert await anext(pieces) == b"first\n"
        worker.go_on.set()
        assert b"".join([p async for p in pieces]) == b"last\n"
    worker.go_on.clear()


async def test_connects_own_life_goes_through_the_proxy(http: httpx.AsyncClient, demo: str) -> None:
    base = f"/clusters/{demo}"
    assert (await http.get(base)).json()["version"] == "4.3.0"
    created = await http.post(f"{base}/connectors", json={"name": "p1", "config": FILE_SOURCE})
    assert created.status_code == 201
    assert created.headers["location"] == f"/clusters/{demo}/connectors/p1"
    assert (await http.get(created.headers["location"])).json()["name"] == "p1"
    again = await http.post(f"{base}/connectors", json={"name": "p1", "config": FILE_SOURCE})
    assert (again.status_code, again.json()) == (409, {"error_code": 409, "message": "Connector p1 already exists"})
    assert (await http.put(f"{base}/connectors/p1/pause")).status_code == 202
    gone = await http.delete(f"{base}/connectors/p1")
    assert (gone.status_code, gone.content) == (204, b"")
    head = await http.head(base)
    assert head.status_code == 404  # the worker's own answer: it was asked


async def test_the_proxys_own_errors_have_connects_form(gateway: Channel, http: httpx.AsyncClient, demo: str) -> None:
    stub = WorkerClusterServiceStub(gateway)
    spec = WorkerClusterSpec(broker_cluster="outside", count=1)
    await stub.CreateWorkerCluster(clusters.CreateWorkerClusterRequest(name="idle", spec=spec))
    for path, status, words in (
        ("/clusters/nobody/connectors", 404, "nobody"),
        ("/clusters/No%20Name/", 404, "'No Name'"),
        ("/clusters/", 404, "''"),
        ("/clusters/idle/connectors", 503, "worker cluster 'idle' has no running worker"),
        ("/elsewhere", 404, "/clusters/{name}/"),
    ):
        answer = await http.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        assert answer.json()["error_code"] == status
        assert words in answer.json()["message"]
    await deleted_cluster(gateway, "idle")


async def test_a_body_that_is_too_large_is_refused(system: System, http: httpx.AsyncClient, demo: str) -> None:
    head = b"PUT /clusters/demo/echo HTTP/1.1\r\nHost: g\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n"
    assert b"HTTP/1.1 413 " in await raw_http(system, head)

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(9):
            yield bytes(1024 * 1024)

    answer = await http.put(f"/clusters/{demo}/echo", content=endless())
    assert answer.status_code == 413
    assert answer.json()["error_code"] == 413
    assert "8388608 bytes" in answer.json()["message"]


async def test_the_next_worker_is_asked_when_one_is_gone(
    system: System, gateway: Channel, http: httpx.AsyncClient
) -> None:
    await started_cluster(gateway, "pair", count=2)
    await system.node_of("worker/pair/0").close("worker/pair/0")
    answer = await http.post("/clusters/pair/echo", content=b"x" * 100_000)
    assert (answer.status_code, answer.json()["size"]) == (299, 100_000)
    stub = ConnectorServiceStub(gateway)
    await stub.CreateConnector(connectors.CreateConnectorRequest(worker_cluster="pair", name="c", config=FILE_SOURCE))
    await system.node_of("worker/pair/1").close("worker/pair/1")
    answer = await http.get("/clusters/pair/connectors")
    assert answer.status_code == 503
    for number in (0, 1):
        assert system.worker(f"worker/pair/{number}").url in answer.json()["message"]
    with pytest.raises(Unavailable, match="no worker of worker cluster 'pair' can be reached"):
        await stub.GetConnector(connectors.GetConnectorRequest(worker_cluster="pair", name="c"))
    await deleted_cluster(gateway, "pair")


async def test_index_and_health(http: httpx.AsyncClient, demo: str) -> None:
    index = (await http.get("/")).json()
    assert index["name"] == "keelman"
    assert index["version"]
    assert {"name": demo, "state": "RUNNING", "path": f"/clusters/{demo}/"} in index["clusters"]
    assert (await http.get("/healthz")).json() == {"status": "healthy"}
    told = (await http.get("/metrics")).text
    samples = {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(told) for s in f.samples}
    assert samples["keelman_gateway_state_up",] == 1
    assert samples["keelman_worker_cluster_state", demo, "RUNNING"] == 1
    assert samples["keelman_worker_cluster_ready_workers", demo] == 1


async def test_without_the_state_service_workers_are_still_reached(
    system: System, gateway: Channel, http: httpx.AsyncClient, demo: str
) -> None:
    assert (await http.get(f"/clusters/{demo}/connectors")).status_code == 200
    watch = CopyRunServiceStub(gateway).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=60)
    assert (await watch.read()).snapshot
    system.state.stop(signal.SIGKILL)
    with (
        pytest.raises(Unavailable, match=f"the state service at {system.state.address} cannot be reached"),
        translated(),
    ):
        await drained(watch)
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=f"the state service at {system.state.address} cannot be reached"):
        await NodeServiceStub(gateway).ListNodes(nodes.ListNodesRequest(), timeout=60)
    assert time.monotonic() - begun < 30
    assert (await http.get(f"/clusters/{demo}/connectors")).status_code == 200
    never_asked = await http.get("/clusters/other/connectors")
    assert never_asked.status_code == 503
    assert system.state.address in never_asked.json()["message"]
    assert system.state.address in (await http.get("/")).json()["message"]
    assert "keelman_gateway_state_up 0" in (await http.get("/metrics")).text
    assert (await http.get("/healthz")).status_code == 200
    await system.state.start()

    async def back() -> bool:
        try:
            found = await NodeServiceStub(gateway).ListNodes(nodes.ListNodesRequest(), timeout=60)
        except Unavailable:
            return False
        return [n.status.state for n in found.nodes] == [NODE_STATE_ONLINE] * 2

    await eventually(back)


async def test_sigterm_ends_it_in_spite_of_open_streams(system: System, tmp_path: Path) -> None:
    port, http_port = free_ports(2)
    flags = {"port": str(port), "http-port": str(http_port), "state-address": system.state.address}
    second = Process("gateway", flags, tmp_path / "log")
    await second.start()
    async with channel(second.address) as to:
        watch = CopyRunServiceStub(to).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=60)
        await watch.read()
        assert second.stop() == 0
    assert "Traceback" not in second.log.read_text()
