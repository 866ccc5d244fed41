"""A managed cluster's brokers on several hosts: changed one by one, one added, one taken away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from keelman.kafka.cluster_state import partitions_of
from keelman.model.errors import FailedPrecondition, KeelmanError
from support.eventually import eventually
from support.hosts.networks import RUNNING, System, running_hosts

pytestmark = [pytest.mark.component, pytest.mark.fault, pytest.mark.slow]
NODES = ("n1", "n2", "n3", "n4")
BROKERS = [f"broker/default/{n}" for n in range(3)]


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    async with running_hosts(tmp_path, NODES) as hosts:
        yield hosts


async def watched_change(system: System, bootstrap: str) -> tuple[int, int]:
    """Follows a change until all brokers have it.

    Returns the most brokers that were away at once, and the fewest replicas of the topic that were in sync.
    """
    away, fewest = 0, 3
    while True:
        workloads = await system.of.workloads()
        fresh = [
            workloads[n].status.state == RUNNING and workloads[n].status.generation == workloads[n].generation
            for n in BROKERS
        ]
        away = max(away, fresh.count(False))
        try:
            there = await partitions_of({"bootstrap.servers": bootstrap}, seconds=5)
            fewest = min([fewest, *(len(p.in_sync) for p in there if p.topic == "kept")])
        except KeelmanError:
            pass  # the broker that gets the request is the one that ends
        if all(fresh) and all(workloads[n].generation == 2 for n in BROKERS):
            return away, fewest
        await asyncio.sleep(0.1)


async def test_brokers_change_one_by_one_and_come_and_go(system: System) -> None:
    await system.of.create_managed("default", *NODES[:3])
    await system.in_state("default", "RUNNING")
    bootstrap = (await system.of.broker_cluster("default")).status.bootstrap_servers
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("kept", 3, 3)])["kept"].result(300)

    await system.update_brokers("default", "managed.properties", properties={"log.retention.hours": "5"})
    async with asyncio.timeout(300):
        away, fewest = await watched_change(system, bootstrap)
    assert (away, fewest) == (1, 2), "one at a time, and none before all were in sync again"
    await system.in_state("default", "RUNNING")

    await system.update_brokers("default", "managed.nodes", nodes=NODES)
    added = (await system.running("broker/default/3"))["broker/default/3"]
    assert (added.node, added.spec.broker.controller, added.spec.broker.replicas) == ("n4", False, 3)
    admin.create_topics([NewTopic("there", replica_assignment=[[3, 0], [1, 2]], num_partitions=2)])["there"].result(300)

    with pytest.raises(FailedPrecondition, match=r"without n4 replicas of 1 partitions .*\(there-0\)") as refused:
        await system.update_brokers("default", "managed.nodes", nodes=NODES[:3])
    assert refused.value.reason == "WOULD_LOSE_PARTITIONS"
    with pytest.raises(FailedPrecondition, match="node n1 carries broker/default/0, a controller"):
        await system.update_brokers("default", "managed.nodes", nodes=NODES[1:])

    admin.delete_topics(["there"])["there"].result(300)

    async def removed() -> bool:
        await system.update_brokers("default", "managed.nodes", nodes=NODES[:3])
        return True

    await eventually(_retried(removed), what="nothing is on it any more")

    async def gone() -> bool:
        return "broker/default/3" not in await system.of.workloads()

    await eventually(gone, what="the broker is gone")
    assert not list(system.hosts["n4"].home.workloads.glob("broker*"))
    await system.in_state("default", "RUNNING")


def _retried(work):  # type: ignore[no-untyped-def]
    async def once() -> bool:
        try:
            return bool(await work())
        except FailedPrecondition:
            return False

    return once
