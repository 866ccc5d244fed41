"""Faults are found, with a remedy; healthy resources have no finding."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from keelman.api.connect.v1.broker_cluster_pb2 import (
    BrokerAccess,
    BrokerCluster,
    BrokerClusterSpec,
    BrokerClusterStatus,
    ExternalBrokers,
    ManagedBrokers,
)
from keelman.api.connect.v1.connector_definition_pb2 import ConnectorDefinition, ConnectorDefinitionStatus
from keelman.api.connect.v1.topic_pb2 import Topic, TopicStatus
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerCluster, WorkerClusterSpec, WorkerClusterStatus
from keelman.api.node.v1.node_pb2 import Node, NodeFigures, NodeStatus
from keelman.api.node.v1.workload_pb2 import LogProblem
from keelman.cli.doctor import here
from keelman.cli.doctor.clusters import broker_findings, definition_findings, topic_findings, worker_findings
from keelman.cli.doctor.finding import Finding
from keelman.cli.doctor.here import degraded_findings, gateway_findings, home_findings
from keelman.cli.doctor.nodes import node_findings
from keelman.cli.doctor.storage_topics import judged, topics_of
from keelman.model.errors import Unavailable
from keelman.runtime.http.server import serve_http
from keelman.runtime.processes.ports import free_ports

NOW = 1_800_000_000
WELL: dict[str, Any] = {
    "disk_free_bytes": 100 << 30, "memory_available_bytes": 4 << 30, "open_files_limit": 65536, "clock_ms": NOW * 1000,
    "python_version": "3.12.1", "java_version": "17.0.15",
}  # fmt: skip


def node(state: str = "ONLINE", version: str = "1.0", **figures: Any) -> Node:
    status = NodeStatus(
        state=f"NODE_STATE_{state}", version=version, figures=NodeFigures(**WELL | figures),
        heartbeat_time=Timestamp(seconds=NOW),
    )  # fmt: skip
    return Node(name="n1", status=status)


def said(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    assert all(finding.remedy for finding in findings)
    return [(finding.check, finding.problem) for finding in findings]


@pytest.mark.parametrize(
    ("examined", "results"),
    [
        (node(), []),
        (node("EXPECTED", version="0.1"), []),
        (node("OFFLINE"), [("nodes", "it is OFFLINE")]),
        (node(version="0.9"), [("versions", "its agent runs keelman 0.9, and this is 1.0")]),
        (node(disk_free_bytes=5 << 20), [("disk", "5.0 MiB of disk are free")]),
        (node(memory_available_bytes=5 << 20), [("memory", "5.0 MiB of memory are free")]),
        (node(open_files_limit=1024), [("limits", "processes of its agent may have 1024 files open")]),
        (node(python_version="3.9.1"), [("versions", "its Python is 3.9.1")]),
        (node(java_version=""), [("versions", "it has no Java of 17 or newer")]),
        (
            node(clock_ms=(NOW + 3600) * 1000),
            [("clocks", "its clock is 3600 s ahead of the state service's")],
        ),
        (node(clock_ms=(NOW - 60) * 1000), [("clocks", "its clock is 60 s behind the state service's")]),
        (node(clock_ms=(NOW - 2) * 1000), []),
        (node(python_version="", java_version="", clock_ms=None, open_files_limit=None), []),
    ],
)
def test_nodes(examined: Node, results: list[tuple[str, str]]) -> None:
    assert said(list(node_findings([examined], "1.0"))) == results


def test_a_node_with_one_user_for_tenants() -> None:
    clusters = [WorkerCluster(spec=WorkerClusterSpec(tenant=tenant)) for tenant in ("blue", "", "red", "blue")]
    apart = Node(name="n2", status=NodeStatus(state="NODE_STATE_ONLINE", tenant_users=True))
    problem = (
        "it has one user for the connectors of all tenants (blue, red): they can read each other's files, passwords"
    )
    (found,) = node_findings([node(), apart], "", clusters)
    assert (found.subject, found.problem) == ("node/n1", f"{problem} and memory")
    assert list(node_findings([node()], "", clusters[1:2])) == []


def brokers(state: str, message: str = "", *, managed: bool = False) -> BrokerCluster:
    spec = BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="b:9092"))
    if managed:
        spec = BrokerClusterSpec(managed=ManagedBrokers(nodes=["a"]))
    return BrokerCluster(
        name="b", spec=spec, status=BrokerClusterStatus(state=f"CLUSTER_STATE_{state}", message=message)
    )


@pytest.mark.parametrize(
    ("broker_cluster", "check"),
    [
        (brokers("RUNNING"), None),
        (brokers("STOPPED"), None),
        (brokers("DEGRADED", "no broker answers at b:9092: Connect call failed"), "network"),
        (brokers("DEGRADED", "TLS handshake with b:9092 failed: certificate verify failed"), "tls"),
        (brokers("DEGRADED", "b:9092 refused: SaslAuthenticationFailed"), "sasl"),
        (brokers("DEGRADED", "broker 1 has exited", managed=True), "brokers"),
    ],
)
def test_brokers(broker_cluster: BrokerCluster, check: str | None) -> None:
    assert [broker_finding.check for broker_finding in broker_findings([broker_cluster])] == ([check] if check else [])


@pytest.mark.parametrize(
    ("access", "tenant", "checks"), [("OPEN", "one", ["tenants"]), ("OPEN", "", []), ("RULES", "one", [])]
)
def test_tenants_on_open_brokers_are_found(access: str, tenant: str, checks: list[str]) -> None:
    cluster = brokers("RUNNING", managed=True)
    cluster.spec.managed.access = BrokerAccess.Value(f"BROKER_ACCESS_{access}")
    workers = WorkerCluster(spec=WorkerClusterSpec(broker_cluster=cluster.name, tenant=tenant))
    assert [finding.check for finding in broker_findings([cluster], [workers])] == checks


def test_worker_clusters_topics_and_definitions() -> None:
    status = WorkerClusterStatus(state="CLUSTER_STATE_RUNNING")
    assert list(worker_findings([WorkerCluster(name="w", status=status)])) == []
    status.stuck, status.problem_connectors = True, 2
    status.log_problems.append(LogProblem(message="no bucket"))
    actual_worker_findings = list(worker_findings([WorkerCluster(name="w", status=status)]))
    assert [actual_worker_finding.check for actual_worker_finding in actual_worker_findings] == [
        "workers",
        "connectors",
        "logs",
    ]
    topic = Topic(name="t", status=TopicStatus(state="TOPIC_STATE_PRESENT"))
    assert list(topic_findings([topic])) == []
    topic.status.differences.append("partitions: 6, specified 3")
    lost = Topic(name="u", status=TopicStatus(state="TOPIC_STATE_MISSING"))
    assert said(list(topic_findings([topic, lost]))) == [
        ("topics", "partitions: 6, specified 3"),
        ("topics", "it is MISSING"),
    ]
    definition = ConnectorDefinition(name="d", status=ConnectorDefinitionStatus())
    assert list(definition_findings([definition])) == []
    definition.status.drifted = True
    definition.status.drifts.append("config: tasks.max is 2, was applied as 1")
    assert [definition_finding.check for definition_finding in definition_findings([definition])] == ["definitions"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, None),
        ({"policy": "delete"}, "config topic c has cleanup.policy=delete: its records will be deleted some day"),
        ({"partitions": 3}, "config topic c has 3 partitions: the order of changes is lost"),
        ({"replicas": 1}, "config topic c has 1 replicas on 3 brokers"),
        ({"policy": "", "replicas": 0}, None),
    ],
)
def test_storage_topics(fields: dict[str, Any], problem: str | None) -> None:
    well: dict[str, Any] = {"policy": "compact", "partitions": 1, "replicas": 3, "brokers": 3}
    results = list(judged("worker-cluster/w", "config", "c", **well | fields))
    assert [finding.problem for finding in results] == ([problem] if problem else [])
    assert list(judged("w", "offset", "o", policy="compact", partitions=25, replicas=1, brokers=1)) == []
    named = WorkerCluster(name="w", spec=WorkerClusterSpec(properties={"config.storage.topic": "mine"}))
    assert topics_of(named) == {"config": "mine", "offset": "w.connect-offsets", "status": "w.connect-status"}


async def test_a_gateway_that_cannot_be_asked_says_how_far_one_comes() -> None:
    error = Unavailable("cannot reach the gateway")
    (unknown,) = await gateway_findings("no-such-host.invalid:7400", "--gateway", error)
    assert (unknown.check, "has no address here" in unknown.problem) == ("network", True)
    (closed,) = await gateway_findings(f"127.0.0.1:{free_ports(1)[0]}", "--gateway", error)
    assert (closed.check, "no process accepts connections" in closed.problem) == ("network", True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        (deaf,) = await gateway_findings(f"127.0.0.1:{server.getsockname()[1]}", "--gateway", error)
        assert (deaf.check, deaf.problem) == ("gateway", error.message)


def test_a_home_that_is_full_or_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (gone,) = home_findings(tmp_path / "none")
    assert gone.problem.startswith("it cannot be read")
    monkeypatch.setattr(here, "MIN_DISK_BYTES", 1 << 62)
    (full,) = home_findings(tmp_path)
    assert full.problem.endswith("of disk are free")


@pytest.mark.parametrize(
    ("answer", "problems"),
    [
        ({"status": "degraded", "message": "gateway.access_file: not legal"}, ["gateway.access_file: not legal"]),
        ({"status": "ready"}, []),
        (["degraded"], []),
    ],
)
async def test_a_gateway_that_is_degraded_is_found(answer: Any, problems: list[str]) -> None:
    async def readyz(_: Request) -> JSONResponse:
        return JSONResponse(answer)

    (port,) = free_ports(1)
    app = Starlette(routes=[Route("/readyz", readyz)])
    async with serve_http(app, host="127.0.0.1", port=port, label="gateway", grace_seconds=0.1):
        findings = await degraded_findings(f"http://127.0.0.1:{port}/", None)
    assert said(findings) == [("gateway", problem) for problem in problems]
    assert await degraded_findings(f"http://127.0.0.1:{free_ports(1)[0]}", None) == []
