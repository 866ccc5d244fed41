"""The requests that the gateway forwards to a real state service and to agents, and how it works without them."""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers
from keelman.api.connect.v1 import connector_service_pb2 as connectors
from keelman.api.connect.v1 import worker_cluster_service_pb2 as clusters
from keelman.api.connect.v1 import worker_service_pb2 as workers
from keelman.api.connect.v1.broker_cluster_service_pb2_grpc import BrokerClusterServiceStub
from keelman.api.connect.v1.connector_service_pb2_grpc import ConnectorServiceStub
from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from keelman.api.connect.v1.operation_service_pb2_grpc import OperationServiceStub
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
from keelman.api.node.v1.workload_service_pb2_grpc import WorkloadServiceStub
from keelman.model.errors import InvalidArgument, NotFound, PermissionDenied, Unavailable
from keelman.rpc.channels import Channel, channel
from keelman.rpc.errors import translated, translated_stream
from keelman.rpc.health import is_serving
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.gateway.system import Process, System

pytestmark = pytest.mark.component


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
    call = CopyRunServiceStub(gateway).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=300)
    first = await call.read()
    assert first.snapshot
    call.cancel()


async def test_reflection_names_every_service(gateway: Channel) -> None:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(gateway)

    async def ask() -> AsyncIterator[Any]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        yield reflection_pb2.ServerReflectionRequest(file_containing_symbol="keelman.api.node.v1.NodeService")

    answers = [a async for a in stub.ServerReflectionInfo(ask(), timeout=300)]
    names = {s.name.rpartition(".")[2] for s in answers[0].list_services_response.service}
    assert names == {
        "NodeService", "WorkloadService", "BrokerClusterService", "WorkerClusterService", "WorkerService",
        "SparkClusterService",
        "PlanService", "PluginService", "CopyRunService", "ConnectorService", "ConnectorDefinitionService",
        "OperationService", "TopicService", "DocumentService", "AgentService", "WatchService", "Health",
        "DedicatedConnectorService", "WorkerConfigurationService", "PluginImportService", "SecretService",
        "AuditEventService", "AuthorityService", "BatchService", "JoinService", "JoinTokenService",
        "ServerReflection",
    }  # fmt: skip
    assert answers[1].file_descriptor_response.file_descriptor_proto


async def test_logs_come_from_whichever_node_runs_the_workload(system: System, gateway: Channel, demo: str) -> None:
    stub = AgentServiceStub(gateway)
    node = system.node_of("worker/demo/0")
    request = agent.StreamLogsRequest(workload="worker/demo/0", tail_lines=2, follow=True)
    call = stub.StreamLogs(request, timeout=300)
    assert (await call.read()).lines == b"line 198\nline 199\n"
    node.more_logs.set()
    assert (await call.read()).lines == b"new line\n"
    assert await call.read() is grpc.aio.EOF
    node.more_logs.clear()
    call = stub.StreamLogs(request, timeout=300)
    await call.read()
    assert node.readers == 1
    call.cancel()
    await eventually(lambda: node.readers == 0)
    with pytest.raises(NotFound, match="worker/none/0"), translated():
        await stub.StreamLogs(agent.StreamLogsRequest(workload="worker/none/0"), timeout=300).read()
    with pytest.raises(NotFound, match="has no log of 'spark/"):
        [_ async for _ in translated_stream(stub.StreamLogs(agent.StreamLogsRequest(workload=f"spark/{node.name}")))]
    with pytest.raises(PermissionDenied, match="Drain is not offered"):
        await stub.Drain(agent.DrainRequest())


async def drained(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass


async def test_without_the_state_service_workers_are_still_reached(
    system: System, gateway: Channel, http: httpx.AsyncClient, demo: str
) -> None:
    assert (await http.get(f"/clusters/{demo}/connectors")).status_code == 200
    watch = CopyRunServiceStub(gateway).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=300)
    assert (await watch.read()).snapshot
    system.state.stop(signal.SIGKILL)
    with (
        pytest.raises(Unavailable, match=f"the state service at {system.state.address} cannot be reached"),
        translated(),
    ):
        await drained(watch)
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=f"the state service at {system.state.address} cannot be reached"):
        await NodeServiceStub(gateway).ListNodes(nodes.ListNodesRequest(), timeout=300)
    assert time.monotonic() - begun < 30
    assert (await http.get(f"/clusters/{demo}/connectors")).status_code == 200
    never_asked = await http.get("/clusters/other/connectors")
    assert never_asked.status_code == 503
    assert system.state.address in never_asked.json()["message"]
    assert system.state.address in (await http.get("/")).json()["message"]
    assert "keelman_gateway_state_up 0" in (await http.get("/metrics")).text
    assert (await http.get("/healthz")).status_code == 200

    async def degraded() -> bool:
        answer = await http.get("/readyz")
        assert answer.status_code == 200, "load balancers continue: the workers' REST is passed on"
        return answer.json()["status"] == "degraded" and system.state.address in answer.json()["message"]

    await eventually(degraded, what="it is degraded while no state service answers")
    await eventually(partial(has_health, system.gateway.address, serving=False), what="and its health is NOT_SERVING")
    await system.state.start()

    async def back() -> bool:
        try:
            list_nodes = await NodeServiceStub(gateway).ListNodes(nodes.ListNodesRequest(), timeout=300)
        except Unavailable:
            return False
        return [n.status.state for n in list_nodes.nodes] == [NODE_STATE_ONLINE] * 2

    await eventually(back)
    await eventually(partial(has_health, system.gateway.address, serving=True), what="its health is as before")
    assert (await http.get("/readyz")).json() == {"status": "ready"}


async def has_health(address: str, *, serving: bool) -> bool:
    """Whether a process's health reports that it serves, or that it does not."""
    return await is_serving(address) is serving


async def test_sigterm_ends_it_in_spite_of_open_streams(system: System, tmp_path: Path) -> None:
    port, http_port = free_ports(2)
    flags = {"port": str(port), "http-port": str(http_port), "state-address": system.state.address}
    second = Process("gateway", flags, tmp_path / "log")
    await second.start()
    async with channel(second.address) as to:
        watch = CopyRunServiceStub(to).WatchCopyRuns(runs.WatchCopyRunsRequest(), timeout=300)
        await watch.read()
        assert second.stop() == 0
    assert "Traceback" not in second.log.read_text()
