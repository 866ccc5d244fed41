"""Clusters and nodes changed by the command line, before a real gateway and a real state service.

Two nodes report every assigned workload as running.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import CONFLICT, FAILED, OK, USAGE
from keelman.rpc.channels import channel
from keelman.runtime.processes.ports import free_ports
from support.cli.commands import Commands, commands, write_home
from support.cli.system import Ran
from support.eventually import eventually
from support.gateway.system import System, running_system

pytestmark = pytest.mark.component


@pytest_asyncio.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with running_system(tmp_path_factory.mktemp("system")) as system:
        yield system


@pytest_asyncio.fixture(scope="module")
async def prompt(system: System, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Commands]:
    folder = tmp_path_factory.mktemp("home")
    async with channel(system.gateway.address) as to:
        gateway = Gateway(to)

        async def both_nodes() -> bool:
            return len(await gateway.list(kinds.NODES)) == 2

        await eventually(both_nodes)
        external = ExternalBrokers(bootstrap_servers="127.0.0.1:1")
        await gateway.create(kinds.BROKER_CLUSTERS, "default", BrokerClusterSpec(external=external))
        write_home(system, folder)
        async with commands(folder) as prompt:
            yield prompt


async def ran(prompt: Commands, *lines: str) -> list[Ran]:
    """Runs commands that must all succeed."""
    results = [await prompt.run(line.split()) for line in lines]
    assert [outcome.code for outcome in results] == [OK] * len(lines), results
    return results


async def shown(prompt: Commands, line: str) -> Any:
    [outcome] = await ran(prompt, f"{line} -o json")
    return json.loads(outcome.out)


async def test_a_cluster_is_created_with_all_that_can_be_said_and_changed_bit_by_bit(prompt: Commands) -> None:
    port, metrics, stored = free_ports(3)
    outcome, again = await ran(
        prompt,
        "create wc whole --count 1 --description nightly --label team=blue --label tier=1 --node-selector disk=ssd "
        f"--port {port} --metrics-port {metrics} --reserved-port {stored} --cpus 1.5 --memory 512MiB "
        "--set offset.flush.interval.ms=1000 --set task.shutdown.graceful.timeout.ms=1",
        "update wc whole --set offset.flush.interval.ms=2000 --unset task.shutdown.graceful.timeout.ms --unlabel tier "
        "--label team=red --memory 1GiB --node-selector none --description night",
    )
    assert outcome.out == "worker-cluster/whole\n"
    assert again.out == "worker-cluster/whole updated\n"
    spec = (await shown(prompt, "get wc whole"))["spec"]
    assert spec["properties"] == {"offset.flush.interval.ms": "2000"}
    assert spec["labels"] == {"team": "red"}
    assert spec["node_selector"] == {}
    assert spec["limits"] == {"cpus": 1.5, "memory_bytes": str(1 << 30)}
    assert (spec["description"], spec["port"], spec["metrics_port"], spec["reserved_ports"]) == (
        "night", port, metrics, [stored],
    )  # fmt: skip
    [same] = await ran(prompt, "update wc whole --description night")
    assert same.out == "worker-cluster/whole has these values already\n"
    assert [shown_item["name"] for shown_item in (await shown(prompt, "get wc -l team=red"))["items"]] == ["whole"]
    assert (await shown(prompt, "get wc -l team=blue"))["items"] == []
    [printed] = await ran(prompt, "describe wc whole")
    assert "limits: 1.5 processors, 1.0 GiB of memory, each worker" in printed.out
    await ran(prompt, "delete wc whole --yes --wait")


async def test_a_cluster_grows_and_shrinks_and_a_forced_stop_ends_it(prompt: Commands) -> None:
    await ran(prompt, "create wc grows --count 1 --start --wait")
    [grown, shrunk] = await ran(
        prompt, "scale wc grows --count 3 --wait --timeout 60", "scale wc grows --count 1 --wait --timeout 60"
    )
    assert grown.out == "worker-cluster/grows updated: RUNNING 3/3 workers\n"
    assert shrunk.out == "worker-cluster/grows updated: RUNNING 1/1 workers\n"
    [rolled] = await ran(prompt, "update wc grows --set offset.flush.interval.ms=1234 --wait --timeout 60")
    assert rolled.out == "worker-cluster/grows updated: RUNNING 1/1 workers\n"
    await ran(prompt, "scale wc grows --count 2 --wait --timeout 60")
    [restarted] = await ran(prompt, "restart wc grows --wait --timeout 60")
    assert restarted.out == "worker-cluster/grows restarted\n"
    plans = await shown(prompt, "get plans --workload worker/grows/0")
    assert plans["items"]
    [table] = await ran(prompt, "get plans --workload worker/grows/0")
    assert {line.split()[2] for line in table.out.splitlines()[1:]} == {"worker/grows/0"}
    number = plans["items"][0]["revision"]
    assert await shown(prompt, f"get plan {number}") == plans["items"][0]
    [plan] = await ran(prompt, f"get plan/{number}")
    assert {line.split()[0] for line in plan.out.splitlines()[1:]} == {number}
    stopped, deleted = await ran(prompt, "stop wc grows --force --wait --timeout 60", "delete wc grows --yes --wait")
    assert stopped.out == "worker-cluster/grows stopped\n"
    assert deleted.out == "worker-cluster/grows deleted\n"


async def test_verbs_do_many_and_go_on_where_one_fails(prompt: Commands) -> None:
    for name, group in (("many-1", "x"), ("many-2", "x"), ("many-3", "y")):
        await ran(prompt, f"create wc {name} --count 1 --label group={group}")
    [labelled, started] = await ran(prompt, "label wc -l group=x tier=1", "start wc -l tier=1 --wait --timeout 60")
    assert labelled.out == "worker-cluster/many-1 updated\nworker-cluster/many-2 updated\n"
    assert started.out == "worker-cluster/many-1 runs\nworker-cluster/many-2 runs\n"
    some = await prompt.run(["restart", "wc", "-l", "group in (x, y)"])
    assert (some.code, some.out.count("asked to restart")) == (CONFLICT, 2)
    assert "keelman: worker-cluster/many-3: worker cluster 'many-3' is STOPPED" in some.err
    [nothing] = await ran(prompt, "stop wc -l group=z")
    assert (nothing.out, nothing.err) == ("", "no worker-clusters with these labels\n")
    for line, message in (
        ("stop wc", "NAME: missing: the worker-cluster to stop"),
        ("stop wc many-1 --all", "--all: not together with a name (many-1)"),
        ("stop wc --all -l group=x", "--all: not together with -l"),
        ("stop cn -l a=b", "-l: not for connectors"),
        ("label wc -l group=x", "label: missing"),
    ):
        refused = await prompt.run(line.split())
        assert (refused.code, message in refused.err) == (USAGE, True), refused
    [stopped, gone] = await ran(
        prompt, "stop wc -l group=x --wait --timeout 60", "delete wc -l group --yes --wait --timeout 60"
    )
    assert stopped.out == "worker-cluster/many-1 stopped\nworker-cluster/many-2 stopped\n"
    assert gone.out.count("deleted") == 3
    [cordoned, again] = await ran(prompt, "cordon --all", "uncordon --all")
    assert (cordoned.out.count("cordoned"), again.out.count("uncordoned")) == (2, 2)


async def test_a_change_that_a_worker_does_not_take_halts_and_ends_the_wait(prompt: Commands, system: System) -> None:
    await ran(prompt, "create wc halts --count 2 --start --wait")
    for node in system.nodes.values():
        node.failing |= dict.fromkeys(("worker/halts/0", "worker/halts/1"), "no such file")
    change = "update wc halts --set offset.flush.interval.ms=7 --wait --timeout 60"
    halted = await prompt.run(change.split())
    assert halted.code == FAILED
    last = halted.err.splitlines()[-1]
    assert last == (
        "keelman: the change of worker-cluster/halts has halted: 0 of 2 workers have the change; worker halts/0 did "
        "not come up: no such file; the others keep their former settings"
    )
    [table, described] = await ran(prompt, "get wc -o wide", "describe wc halts")
    assert "HALTED 0/2" in table.out
    assert "worker halts/0 did not come up: no such file" in " ".join(described.out.split())
    states = {w["name"]: w["process"]["state"] for w in (await shown(prompt, "get wk --cluster halts"))["items"]}
    assert states == {"halts/0": "WORKLOAD_STATE_FAILED", "halts/1": "WORKLOAD_STATE_RUNNING"}
    for node in system.nodes.values():
        node.failing.clear()
    [mended] = await ran(prompt, "update wc halts --unset offset.flush.interval.ms --wait --timeout 60")
    assert mended.out == "worker-cluster/halts updated: RUNNING 2/2 workers\n"
    await ran(prompt, "delete wc halts --yes --wait")


async def test_what_is_hidden_stays_what_it_is(prompt: Commands) -> None:
    await ran(prompt, "create wc hides --count 1 --set producer.ssl.key.password=planted --start --wait")
    await ran(prompt, "update wc hides --set offset.flush.interval.ms=9 --wait --timeout 60")
    spec = (await shown(prompt, "get wc hides"))["spec"]
    assert spec["properties"] == {"producer.ssl.key.password": "[hidden]", "offset.flush.interval.ms": "9"}
    [plans] = await ran(prompt, "get plans --workload worker/hides/0")
    assert "offset.flush.interval.ms" in plans.out
    assert "password" not in plans.out, "it did not change"
    await ran(prompt, "delete wc hides --yes --wait")


async def test_a_pinned_cluster_changes_its_nodes_and_is_not_scaled(prompt: Commands) -> None:
    await ran(prompt, "create wc pinned --nodes node-1 --start --wait", "update wc pinned --add-node node-2 --wait")
    assert (await shown(prompt, "get wc pinned"))["spec"]["nodes"]["names"] == ["node-1", "node-2"]
    await ran(prompt, "update wc pinned --remove-node node-1 --wait --timeout 60")
    workers = (await shown(prompt, "get workers --cluster pinned"))["items"]
    assert [worker["node"] for worker in workers] == ["node-2"]
    refused = await prompt.run(["scale", "wc", "pinned", "--count", "2"])
    assert refused.code == USAGE
    assert "the workers of pinned are on nodes that it names (node-2)" in refused.err
    await ran(prompt, "delete wc pinned --yes --wait")


async def test_nodes_are_expected_labelled_and_cordoned(prompt: Commands) -> None:
    outcome, labelled, _ = await ran(
        prompt,
        "create node node-9 --label disk=ssd --memory 8GiB --description later",
        "label node/node-9 zone=a disk-",
        "cordon node-9",
    )
    assert (outcome.out, labelled.out) == ("node/node-9\n", "node/node-9 updated\n")
    node = await shown(prompt, "get node node-9")
    assert node["status"]["state"] == "NODE_STATE_EXPECTED"
    assert (node["spec"]["labels"], node["spec"]["cordoned"]) == ({"zone": "a"}, True)
    [table, chosen] = await ran(prompt, "get nodes -o wide", "get nodes -l zone=a -o name")
    assert "cordoned" in table.out
    assert chosen.out == "node/node-9\n"
    await ran(prompt, "uncordon node/node-9")
    [deleted] = await ran(prompt, "delete no node-9 --yes")
    assert deleted.out == "node/node-9 deleted\n"


async def test_a_drained_node_is_left_and_pinned_workers_are_named(prompt: Commands) -> None:
    await ran(
        prompt,
        "create wc moves --count 2 --start --wait",
        "create wc stays --nodes node-1 --start --wait",
    )
    [drained] = await ran(prompt, "drain node-1 --wait --timeout 60")
    assert drained.out.splitlines() == [
        "node/node-1 drained: no movable workload is left on it",
        "  pinned to node node-1, and so stays: worker/stays/0",
    ]
    workers = (await shown(prompt, "get workers --cluster moves"))["items"]
    assert [worker["node"] for worker in workers] == ["node-2"] * 2
    stuck = await prompt.run(["drain", "node-2", "--wait", "--timeout", "60"])
    assert stuck.code == FAILED
    assert "no other node takes the workloads that leave: node-1 is draining; stays: worker/moves/" in stuck.err
    await ran(
        prompt, "uncordon node-1", "uncordon node-2", "delete wc moves --yes --wait", "delete wc stays --yes --wait"
    )


async def test_what_state_refuses_is_said_with_field_value_and_rule(prompt: Commands) -> None:
    await ran(prompt, "create wc fixed --count 1")
    for command, code, message in (
        ("update wc fixed --label a=ü", USAGE, "spec.labels.a: 'ü' is not legal"),
        ("update wc fixed --port 70000", USAGE, "spec.port: 70000 is not legal"),
        ("update wc fixed --count 1001", USAGE, "spec.count: 1001 is not legal: 1 to 1000"),
        ("update wc fixed --set bootstrap.servers=x:1", USAGE, "it follows from spec.broker_cluster"),
        ("update wc fixed --nodes nosuch", USAGE, "'nosuch' is not legal: registered nodes are node-1, node-2"),
        ("update wc fixed --metrics-port 9 --admin-port 9", USAGE, "another one than spec.metrics_port"),
        ("update bc default --nodes node-1", USAGE, "the brokers run elsewhere"),
        ("create node node-1", CONFLICT, "a node named 'node-1' exists already"),
        ("delete no node-1 --yes", CONFLICT, "node 'node-1' is ONLINE: stop its agent first"),
    ):
        refused = await prompt.run(command.split())
        assert (refused.code, message in refused.err) == (code, True), (command, refused)
        assert refused.err.count("\n") == 1
    await ran(prompt, "delete wc fixed --yes --wait")
