"""Brokers that deny everything without a rule.

With the rules of docs/operations.md everything works; without any one of them a connector reports the missing rule.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from keelman.api.connect.v1 import broker_cluster_pb2 as brokers
from keelman.api.connect.v1 import broker_cluster_service_pb2 as brokers_pb
from keelman.kafka.feed import CONNECTOR_REPORTS, COPY_RUN_REPORTS, WORKER_REPORTS, consume, event_topic
from keelman.rpc.channels import channel
from support.brokers.secure_broker import SECRET, USER, SecureBroker, secure_broker
from support.eventually import eventually
from support.places import ROOT
from support.state.nodes import running_nodes
from support.state.service import RUNNING, Clients

pytestmark = pytest.mark.component
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
ROW = re.compile(r"^\| ([A-Z_]+) \| (\S+) \| (LITERAL|PREFIXED) \| ([A-Z_, ]+) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the page's table."""

    resource: str
    name: str
    pattern: str
    operations: Sequence[str]

    def bindings(self) -> list[AclBinding]:
        where = (ResourceType[self.resource], self.name, ResourcePatternType[self.pattern], f"User:{USER}", "*")
        return [AclBinding(*where, AclOperation[operation], AclPermissionType.ALLOW) for operation in self.operations]

    def allow(self, admin: AdminClient) -> None:
        for answer in admin.create_acls(self.bindings()).values():
            answer.result(300)

    def take_back(self, admin: AdminClient) -> None:
        for b in self.bindings():
            where = (b.restype, b.name, b.resource_pattern_type, b.principal, b.host)
            taken = AclBindingFilter(*where, b.operation, b.permission_type)
            (answer,) = admin.delete_acls([taken]).values()
            assert answer.result(300)


def documented() -> list[Rule]:
    rules = [
        Rule(resource, name, pattern, operations.split(", "))
        for resource, name, pattern, operations in ROW.findall((ROOT / "docs" / "operations.md").read_text())
    ]
    assert len(rules) == 11
    return rules


@pytest.fixture
async def closed(tmp_path: Path) -> AsyncIterator[SecureBroker]:
    async with secure_broker(tmp_path / "broker", closed=True) as secured:
        yield secured


class Worker:
    """The REST API of the cluster's worker."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        async with httpx.AsyncClient(timeout=300, trust_env=False) as client:
            return await client.request(method, f"{self._url}/connectors/{path}", json=body)

    async def configure(self, name: str, config: dict[str, str]) -> None:
        answer = await self.ask("PUT", f"{name}/config", {**config, "value.converter": STRINGS})
        assert answer.status_code == 201, answer.text

    async def trace(self, name: str) -> str:
        """The trace of its task, once it has failed."""

        async def failed() -> str:
            status = (await self.ask("GET", f"{name}/status")).json()
            traces = [str(task["trace"]) for task in status.get("tasks", ()) if task["state"] == "FAILED"]
            assert traces, status
            return traces[0]

        return await eventually(failed, what=f"{name} fails")


def source(file: Path, topic: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSource", "file": str(file), "topic": topic}


def sink(file: Path, topic: str) -> dict[str, str]:
    return {"connector.class": "FileStreamSink", "file": str(file), "topics": topic}


async def started(clients: Clients, broker: SecureBroker, admin: AdminClient, rule: Rule) -> Worker:
    """A worker on these brokers, created through the state service.

    It reports the missing rule until it may join its group.
    """
    jaas = f'{MODULE} required username="{USER}" password="{SECRET}";'
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    external = brokers.ExternalBrokers(bootstrap_servers=broker.at("SASL"), client_properties=properties)
    spec = brokers.BrokerClusterSpec(external=external)
    await clients.brokers.CreateBrokerCluster(brokers_pb.CreateBrokerClusterRequest(name="default", spec=spec))
    await clients.create_workers("demo", count=1)
    await clients.start_workers("demo")

    async def kept_out() -> bool:
        status = (await clients.workloads())["worker/demo/0"].status
        assert "group.id: the broker's access rules keep this worker out of 'keelman-demo'" in status.message, status
        return True

    await eventually(kept_out, what="it has the reason why its worker does not run")
    rule.allow(admin)
    await clients.stop_workers("demo")
    await clients.start_workers("demo")

    async def runs() -> bool:
        return (await clients.workloads())["worker/demo/0"].status.state == RUNNING

    await eventually(runs, what="the worker runs")
    (url,) = (await clients.worker_cluster("demo")).status.rest_urls
    return Worker(url)


@pytest.mark.slow
async def test_the_documented_rules_are_enough_and_each_is_needed(closed: SecureBroker, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": closed.at("PLAINTEXT")})
    rules = documented()
    group = next(r for r in rules if r.name == "keelman-demo")
    for rule in rules:
        if rule is not group:
            rule.allow(admin)
    read, written = tmp_path / "in.txt", tmp_path / "out.txt"
    read.write_text("one\ntwo\n")
    async with running_nodes(tmp_path, ["n1"]) as nodes, channel(f"127.0.0.1:{nodes.state.port}") as connection:
        nodes.start_agent("n1")
        clients = Clients(connection)
        await nodes.are_online(clients)
        worker = await started(clients, closed, admin, group)
        await worker.configure("in", source(read, "orders-a"))
        await worker.configure("out", sink(written, "orders-a"))
        await eventually(lambda: written.exists() and written.read_text() == "one\ntwo\n", what="it copies")
        for topic in (event_topic("worker_cluster"), WORKER_REPORTS, COPY_RUN_REPORTS, CONNECTOR_REPORTS):
            async for fact in consume(closed.at("PLAINTEXT"), [topic]):
                assert fact.topic == topic
                break

        orders = next(r for r in rules if r.name == "orders-")
        producers = next(r for r in rules if r.name == "keelman-demo-" and r.resource == "TRANSACTIONAL_ID")
        groups = next(r for r in rules if r.name == "connect-")
        for number, (rule, config, named) in enumerate([
            (orders, source(read, "orders-b"), "orders-b"),
            (producers, source(read, "orders-c"), "keelman-demo-without-1-0"),
            (orders, sink(written, "orders-a"), "orders-a"),
            (groups, sink(written, "orders-a"), "connect-without-3"),
        ]):  # fmt: skip
            rule.take_back(admin)
            await worker.configure(f"without-{number}", config)
            trace = await worker.trace(f"without-{number}")
            assert named in trace, trace
            assert re.search("access rules|not authorized|authoriz|AUTHORIZATION", trace, re.IGNORECASE), trace
            await worker.ask("DELETE", f"without-{number}")
            rule.allow(admin)
