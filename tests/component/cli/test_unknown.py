"""The commands' errors for a worker cluster that does not exist, and for other unknown names."""

from __future__ import annotations

from pathlib import Path

import pytest

from keelman.api.connect.v1.broker_cluster_pb2 import BrokerClusterSpec, ExternalBrokers
from keelman.api.connect.v1.worker_cluster_pb2 import WorkerClusterSpec
from keelman.cli import kinds
from keelman.cli.client.gateway import Gateway
from keelman.cli.exits import NOT_FOUND
from keelman.rpc.channels import channel
from support.cli.commands import commands, write_home
from support.eventually import eventually
from support.gateway.system import running_system

pytestmark = pytest.mark.component

CLUSTER = [
    *(f"get {kind} --cluster nosuch" for kind in ("copy-runs", "copy-runs --ended", "workers", "connectors")),
    *(f"{verb} wc nosuch" for verb in ("get", "describe", "logs", "start", "stop", "restart", "delete")),
    *(f"{verb} wk nosuch/0" for verb in ("get", "describe", "logs", "restart")),
    *(f"{verb} wk 0 --cluster nosuch" for verb in ("get", "restart")),
    *(f"{verb} cn nosuch/x" for verb in ("get", "describe", "logs", "start", "stop", "pause", "resume", "restart")),
    *(f"{verb} cn {name} --cluster nosuch" for verb in ("get", "delete") for name in ("x", "nosuch/x")),
    "create cn x --cluster nosuch --set connector.class=FileStreamSink",
    "configure cn nosuch/x --set tasks.max=2",
    "watch copy-runs --cluster nosuch",
    "watch copy-runs --cluster nosuch --connector x",
    *(f"{verb} nosuch/x" for verb in ("preview", "dead-letters", "replay", "validate", "offsets get", "offsets reset")),
    "validate nosuch/x --set connector.class=FileStreamSink",
    "offsets set nosuch/x --at t:0=1",
    "restart cn nosuch/x --task 0",
    "restart cn nosuch/x --failed",
    "get plugins --cluster nosuch",
    "scale wc nosuch --count 2",
    "label wc nosuch a=b",
    "update wc nosuch --description x",
    "stop wc nosuch --force",
]
OTHERS = {
    **dict.fromkeys((f"{verb} bc nosuch" for verb in ("get", "start", "delete")), "outside"),
    **dict.fromkeys((f"{verb} no nosuch" for verb in ("get", "delete", "describe")), "node-1, node-2"),
    **dict.fromkeys((f"{verb} nosuch" for verb in ("cordon", "uncordon", "drain")), "node-1, node-2"),
    "label no nosuch a=b": "node-1, node-2",
    "update bc nosuch --description x": "outside",
    "watch copy-runs --connector nosuch": "no connector 'nosuch'",
    **dict.fromkeys(("get topics --broker-cluster nosuch", "peek t --broker-cluster nosuch"), "outside"),
}


async def test_an_unknown_name_is_said_to_be_none(tmp_path: Path) -> None:
    """Every verb does the same: the exit code for it, the name, and the existing names."""
    async with running_system(tmp_path) as system, channel(system.gateway.address) as to:
        gateway = Gateway(to)

        async def both_nodes() -> bool:
            return len(await gateway.list(kinds.NODES)) == 2

        await eventually(both_nodes)
        await gateway.create(
            kinds.BROKER_CLUSTERS,
            "outside",
            BrokerClusterSpec(external=ExternalBrokers(bootstrap_servers="127.0.0.1:1")),
        )
        for name in ("other", "demo"):
            await gateway.create(kinds.WORKER_CLUSTERS, name, WorkerClusterSpec(broker_cluster="outside", count=1))
        write_home(system, tmp_path)
        async with commands(tmp_path) as prompt:
            answer = {command: await prompt.run(command.split()) for command in (*CLUSTER, *OTHERS)}
    expected = {**dict.fromkeys(CLUSTER, "no worker cluster is named 'nosuch': those there are: demo, other"), **OTHERS}
    wrong = {name: ran for name, ran in answer.items() if ran.code != NOT_FOUND or expected[name] not in ran.err}
    assert wrong == {}
