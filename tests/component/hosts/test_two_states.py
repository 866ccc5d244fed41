"""The installation of docs/operations.md that survives the loss of any host, by its commands.

Two state services with certificates on one PostgreSQL, three hosts with an agent and a broker each, and a worker
cluster over all of them.
"""

from __future__ import annotations

import pytest

from support.eventually import eventually
from support.hosts.lines import Lines
from support.hosts.operator import Commands, setting, two_states
from support.servers.postgresql import running_postgresql

pytestmark = [pytest.mark.component, pytest.mark.slow, pytest.mark.usefixtures("postgresql")]
NODES = ("n1", "n2", "n3")


async def test_the_state_service_that_leads_is_killed_and_another_host_pulled(commands: Commands) -> None:
    with running_postgresql({}, host=commands.system.address) as server:
        await two_states(commands, server.database())
        for node in NODES:
            commands.join(node, "--workload-trust", "mesh")
        for node in NODES:
            await eventually(lambda node=node: commands.in_state(node, "ONLINE"), what=f"{node} is online")  # type: ignore[misc]
        await commands.wait_for("create", "broker-cluster", "default", "--nodes", ",".join(NODES), "--tls", "server")
        await commands.wait_for("create", "worker-cluster", "demo", "--count", "3", "--start")
        bootstrap = ",".join(f"{commands.system.hosts[n].address}:9092" for n in NODES)
        client = {"security.protocol": "SSL", "ssl.ca.location": str(commands.authority)}
        lines = Lines(commands.system.folder, bootstrap, ["lines"], client=client)
        with lines.flowing():
            config = lines.config("lines")
            await commands.wait_for("create", "connector", "lines", "--cluster", "demo", *setting(config))
            await lines.passes(seconds=300)

            commands.kill(NODES[0])
            await commands.wait_for("create", "topic", "more", "--partitions", "3")
            assert all(commands.in_state(node, "ONLINE") for node in NODES)
            await lines.passes(seconds=300)

            commands.system.hosts["n3"].pull_cable()
            await eventually(lambda: commands.in_state("n3", "OFFLINE"), what="n3 is offline")
            await lines.passes(seconds=300)
            commands.system.hosts["n3"].plug_in()
            await eventually(lambda: commands.in_state("n3", "ONLINE"), what="n3 is back")
            commands.start("state", "run", "--file", str(commands.system.folder / "state.toml"), host=NODES[0])
            await lines.passes(seconds=300)
            report = await lines.judged()
    assert report.clean, report
