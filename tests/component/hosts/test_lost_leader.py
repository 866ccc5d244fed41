"""Two state services of one PostgreSQL, and three hosts with a broker and a worker each.

The host of the leading state service is lost with everything on it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.rpc.channels import channel
from keelman.rpc.health import is_serving
from support.eventually import eventually
from support.hosts.lines import Lines
from support.hosts.networks import STATE, System, cabled, ended
from support.hosts.pulled import pulled, spread
from support.servers.postgresql import running_postgresql
from support.state.service import Clients

pytestmark = [pytest.mark.component, pytest.mark.slow]
NODES = ("n1", "n2", "n3")
TOPICS = ("lines-0", "lines-1", "lines-2")


def begun_to_lead(folder: Path) -> int:
    """The number of times that a state service began to lead, from their logs."""
    return len(re.findall(r"\bleads +epoch=", (folder / "state.log").read_text()))


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """State services on n1, which leads, and on n2; the gateway and the database are on this host."""
    with cabled(tmp_path, NODES) as opened, running_postgresql({}, host=opened.address) as database, ended(opened):
        url, key = database.database(), str(tmp_path / "key")
        states = [opened.hosts[name] for name in NODES[:2]]
        for host in states:
            place = ("--host", host.address, "--port", str(STATE), "--home", str(tmp_path / f"state-{host.name}"))
            opened.spawn("state", *place, "--database", url, "--key-file", key, on=host)
            await eventually(lambda host=host: is_serving(f"{host.address}:{STATE}"), what="state serves")
            if host is states[0]:
                await eventually(lambda: begun_to_lead(tmp_path) == 1, what="it leads")
        addresses = ",".join(f"{host.address}:{STATE}" for host in states)
        gateway_address = await opened.start_gateway(addresses)
        for host in opened.hosts.values():
            host.start(addresses)
        async with channel(gateway_address) as gateway:
            opened.clients = opened.gateway = Clients(gateway)
            await opened.online(*NODES)
            yield opened


async def test_the_leaders_host_is_lost_and_nothing_of_the_records(system: System, tmp_path: Path) -> None:
    brokers = await system.brokers_and_workers(*NODES)
    lines = Lines(system.folder, brokers, TOPICS)
    with lines.flowing():
        for topic in TOPICS:
            await system.configure("demo", topic, lines.config(topic))
        await lines.passes(seconds=300)
        await spread(system, TOPICS, over=3)
        took = await pulled(system, lines, TOPICS, system.hosts["n1"])
        print(f"\npulled, with the leader on it: {took}")
        assert begun_to_lead(tmp_path) == 2
        system.hosts["n1"].plug_in()
        await system.online(*NODES)
        await system.in_state("default", "RUNNING", seconds=300)
        await lines.passes()
        report = await lines.judged()
    assert report.clean, report
    took.check()
