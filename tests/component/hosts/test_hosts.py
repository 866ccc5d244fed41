"""Three hosts with a broker each: workers copy, logs come from any of them, and one host's cable is pulled."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.kafka.cluster_state import partitions_of
from support.hosts.lines import Lines
from support.hosts.networks import System, running_hosts
from support.hosts.pulled import pulled, spread

pytestmark = [pytest.mark.component, pytest.mark.fault]
NODES = ("n1", "n2", "n3")
TOPICS = ("lines-0", "lines-1", "lines-2")


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    async with running_hosts(tmp_path, NODES) as hosts:
        yield hosts


async def test_a_host_whose_cable_is_pulled_is_replaced_and_nothing_is_lost_or_doubled(system: System) -> None:
    brokers = await system.brokers_and_workers(*NODES)
    bootstrap = {"bootstrap.servers": brokers}
    assert brokers == ",".join(f"{system.hosts[n].address}:9092" for n in NODES)
    assert sorted((await system.workers("demo")).values()) == sorted(NODES)
    assert "broker_ready" in await system.log_of("broker/default/2")
    assert "Spark" in await system.log_of("worker/demo/1")

    lines = Lines(system.folder, brokers, TOPICS)
    with lines.flowing():
        for topic in TOPICS:
            await system.configure("demo", topic, lines.config(topic))
        await lines.passes(seconds=300)

        await spread(system, TOPICS, over=3)
        await lines.passes()
        of_ours = [p for p in await partitions_of(bootstrap, seconds=30) if p.topic.startswith("keelman.")]
        assert {len(p.replicas) for p in of_ours} == {3}, of_ours

        lost = system.hosts["n3"]
        took = await pulled(system, lines, TOPICS, lost)
        print(f"\npulled: {took}")
        assert set((await system.workers("demo")).values()) == {"n1", "n2"}

        lost.plug_in()
        await system.online("n3")
        await system.in_state("default", "RUNNING", seconds=300)
        await lines.passes()
        report = await lines.judged()
        assert report.clean, report
    took.check()
