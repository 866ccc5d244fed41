"""Clusters and nodes changed by the command line, before a real gateway and a real state service; two nodes that
report whatever they are to run as running."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import CONFLICT, OK, USAGE
from keelman.rpc.channels import channel
from keelman.runtime.processes.ports import free_ports
from keelman.testing.eventually import eventually
from support.commands import told, write_home
from support.gateway_system import running_system
from support.system_kit import Ran

pytestmark = pytest.mark.component


@pytest_asyncio.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    async with running_system(folder) as system, channel(system.gateway.address) as to:
        gateway = Gateway(to)

        async def both_nodes() -> bool:
            return len(await gateway.list(kinds.NODES)) == 2

        await eventually(both_nodes)
        external = ExternalBrokers(bootstrap_servers="127.0.0.1:1")
        await gateway.create(kinds.BROKER_CLUSTERS, "default", BrokerClusterSpec(external=external))
        write_home(system, folder)
        yield folder


async def ran(home: Path, *commands: str) -> list[Ran]:
    """Commands that all succeed."""
    found = await told([one.split() for one in commands], home)
    assert [one.code for one in found] == [OK] * len(commands), found
    return found


async def shown(home: Path, command: str) -> Any:
    [found] = await ran(home, f"{command} -o json")
    return json.loads(found.out)


async def test_a_cluster_is_created_with_all_that_can_be_said_and_changed_bit_by_bit(home: Path) -> None:
    port, metrics, kept = free_ports(3)
    made, again = await ran(
        home,
        "create wc whole --count 1 --description nightly --label team=blue --label tier=1 --node-selector disk=ssd "
        f"--port {port} --metrics-port {metrics} --reserved-port {kept} --cpus 1.5 --memory 512MiB "
        "--set offset.flush.interval.ms=1000 --set task.shutdown.graceful.timeout.ms=1",
        "update wc whole --set offset.flush.interval.ms=2000 --unset task.shutdown.graceful.timeout.ms --unlabel tier "
        "--label team=red --memory 1GiB --node-selector none --description night",
    )
    assert made.out == "worker-cluster/whole\n"
    assert again.out == "worker-cluster/whole updated\n"
    spec = (await shown(home, "get wc whole"))["spec"]
    assert spec["properties"] == {"offset.flush.interval.ms": "2000"}
    assert spec["labels"] == {"team": "red"}
    assert spec["node_selector"] == {}
    assert spec["limits"] == {"cpus": 1.5, "memory_bytes": str(1 << 30)}
    assert (spec["description"], spec["port"], spec["metrics_port"], spec["reserved_ports"]) == (
        "night", port, metrics, [kept],
    )  # fmt: skip
    [same] = await ran(home, "update wc whole --description night")
    assert same.out == "worker-cluster/whole has all this already\n"
    assert [one["name"] for one in (await shown(home, "get wc -l team=red"))["items"]] == ["whole"]
    assert (await shown(home, "get wc -l team=blue"))["items"] == []
    [said] = await ran(home, "describe wc whole")
    assert "limits: 1.5 processors, 1.0 GiB of memory, each worker" in said.out
    await ran(home, "delete wc whole --yes --wait")


async def test_nodes_are_expected_labelled_and_cordoned(home: Path) -> None:
    made, labelled, _ = await ran(
        home,
        "create node node-9 --label disk=ssd --memory 8GiB --description later",
        "label node/node-9 zone=a disk-",
        "cordon node-9",
    )
    assert (made.out, labelled.out) == ("node/node-9\n", "node/node-9 updated\n")
    node = await shown(home, "get node node-9")
    assert node["status"]["state"] == "NODE_STATE_EXPECTED"
    assert (node["spec"]["labels"], node["spec"]["cordoned"]) == ({"zone": "a"}, True)
    [table, chosen] = await ran(home, "get nodes -o wide", "get nodes -l zone=a -o name")
    assert "cordoned" in table.out
    assert chosen.out == "node/node-9\n"
    await ran(home, "uncordon node/node-9", "delete no node-9 --yes")


async def test_what_state_refuses_is_said_with_field_value_and_rule(home: Path) -> None:
    await ran(home, "create wc fixed --count 1")
    for command, code, said in (
        ("update wc fixed --label a=ü", USAGE, "spec.labels.a: 'ü' is not legal"),
        ("update wc fixed --port 70000", USAGE, "spec.port: 70000 is not legal"),
        ("update wc fixed --count 1001", USAGE, "spec.count: 1001 is not legal: 1 to 1000"),
        ("update wc fixed --set bootstrap.servers=x:1", USAGE, "leave bootstrap.servers out"),
        ("update wc fixed --nodes nosuch", USAGE, "'nosuch' is not legal: registered nodes are node-1, node-2"),
        ("update wc fixed --metrics-port 9 --admin-port 9", USAGE, "another one than spec.metrics_port"),
        ("update bc default --nodes node-1", USAGE, "the brokers run elsewhere"),
        ("create node node-1", CONFLICT, "a node named 'node-1' exists already"),
        ("delete no node-1 --yes", CONFLICT, "node 'node-1' is ONLINE: stop its agent first"),
    ):
        [refused] = await told([command.split()], home)
        assert (refused.code, said in refused.err) == (code, True), (command, refused)
        assert refused.err.count("\n") == 1
    await ran(home, "delete wc fixed --yes --wait")
