"""An installation on three hosts by the commands of docs/operations.md.

One host is lost for good, with its broker and its disk, and another host takes its name.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import javaproperties
import pytest

from keelman.kafka.cluster_state import partitions_of
from keelman.kafka.security.tls_sasl import for_librdkafka
from support.eventually import eventually
from support.hosts.lines import Lines
from support.hosts.operator import Commands, first_host, setting

pytestmark = [pytest.mark.component, pytest.mark.slow]
NODES = ("n1", "n2", "n3")


async def in_sync(brokers: Mapping[str, str], topic: str) -> bool:
    """Whether each of the three brokers has the whole topic."""
    results = [p for p in await partitions_of(brokers, seconds=5) if p.topic == topic]
    return bool(results) and all(len(p.in_sync) == 3 for p in results)


def worker_client(commands: Commands, workload: str) -> dict[str, str]:
    """The client properties by which the brokers know a worker of n1."""
    with (commands.home("n1").workload(workload) / "worker.properties").open() as file:
        properties: dict[str, str] = javaproperties.load(file)
    return {key: value for key, value in properties.items() if key.startswith(("security.", "ssl."))}


async def test_installed_by_the_documented_commands_and_a_host_is_replaced(commands: Commands) -> None:
    await first_host(commands)
    for node in NODES:
        commands.join(node, "--workload-trust", "mesh")
    for node in NODES:
        await eventually(lambda node=node: commands.in_state(node, "ONLINE"), what=f"{node} is online")  # type: ignore[misc]
    await commands.wait_for("create", "broker-cluster", "default", "--nodes", ",".join(NODES), "--tls", "mutual")
    await commands.wait_for("create", "worker-cluster", "demo", "--nodes", "n1,n2", "--allow-group", "*", "--start")

    bootstrap = ",".join(f"{commands.system.hosts[n].address}:9092" for n in NODES)
    brokers = {**worker_client(commands, "worker/demo/0"), "bootstrap.servers": bootstrap}
    lines = Lines(commands.system.folder, bootstrap, ["lines"], client=for_librdkafka(brokers))
    with lines.flowing():
        config = lines.config("lines")
        await commands.wait_for("create", "connector", "lines", "--cluster", "demo", *setting(config))
        await lines.passes(seconds=300)

        commands.lose("n3")
        shutil.rmtree(commands.home("n3").root)
        await eventually(lambda: commands.in_state("n3", "OFFLINE"), what="n3 is offline")
        await lines.passes(seconds=300)
        commands.join("n3", "--workload-trust", "mesh")
        await eventually(lambda: commands.in_state("n3", "ONLINE"), what="another host is n3")
        await eventually(lambda: in_sync(brokers, "lines"), every=0.5, what="its broker has caught up")
        await lines.passes(seconds=300)
        report = await lines.judged()
    assert report.clean, report
