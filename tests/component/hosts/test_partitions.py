"""Two services that do not reach each other for a while, in both directions or in one, recover without an operator."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.api.connect.v1.worker_cluster_pb2 import WorkerNodes
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from support.eventually import eventually
from support.hosts.lines import Lines
from support.hosts.networks import Host, System, running_hosts

pytestmark = [pytest.mark.component, pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(3600)]
WORKER, BROKER, STATE, GATEWAY = "worker", "broker", "state", "gateway"
SECONDS = float(os.environ.get("KEELMAN_PARTITION_SECONDS") or 10)
ALL = bool(os.environ.get("KEELMAN_PARTITION_SECONDS"))
HEALED_SECONDS = 300.0
PAIRS = list(itertools.combinations((STATE, GATEWAY, WORKER, BROKER), 2)) if ALL else [(STATE, WORKER)]


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    async with running_hosts(tmp_path, (WORKER, BROKER), apart=(STATE, GATEWAY)) as hosts:
        yield hosts


async def healed(system: System, lines: Lines) -> None:
    """Returns when all is as before: nodes, brokers and workers, the gateway's view of them, and the copying."""
    await system.online(WORKER, BROKER)
    await system.in_state("default", "RUNNING", seconds=HEALED_SECONDS)
    await system.running("broker/default/0", "worker/demo/0", f"spark/{WORKER}", seconds=HEALED_SECONDS)

    async def by_way_of_the_gateway() -> bool:
        assert system.gateway is not None
        nodes = (await system.gateway.nodes.ListNodes(ListNodesRequest())).nodes
        assert {node.name for node in nodes} == {WORKER, BROKER}
        return bool(await system.owners("demo", ["lines"]))

    await eventually(by_way_of_the_gateway, seconds=HEALED_SECONDS, what="the gateway answers, and the task runs")
    await lines.passes(seconds=HEALED_SECONDS)


def ways(host: Host, other: Host) -> dict[str, list[tuple[Host, Host]]]:
    """The lost directions between two hosts: pairs of sender and receiver."""
    there, back = (host, other), (other, host)
    return {
        f"{host.name} to {other.name}": [there],
        f"{other.name} to {host.name}": [back],
        f"{host.name} and {other.name}": [there, back],
    }


async def test_it_heals_without_a_person_and_nothing_is_lost_or_doubled(system: System) -> None:
    await system.of.create_managed("default", BROKER)
    await system.in_state("default", "RUNNING")
    brokers = (await system.of.broker_cluster("default")).status.bootstrap_servers
    await system.create_workers("demo", nodes=WorkerNodes(names=[WORKER]))
    await system.running("worker/demo/0", f"spark/{WORKER}")
    lines = Lines(system.folder, brokers, ["lines"], brokers=1)
    took = {}
    with lines.flowing():
        await system.configure("demo", "lines", lines.config("lines"))
        await lines.passes(seconds=300)
        loop = asyncio.get_running_loop()
        for names in PAIRS:
            for name, lost in ways(*(system.hosts[name] for name in names)).items():
                cut = loop.time()
                for sender, to in lost:
                    sender.lose(to)
                if set(names) != {WORKER, BROKER}:  # these copy by themselves
                    await lines.passes(seconds=SECONDS)
                await asyncio.sleep(max(0.0, cut + SECONDS - loop.time()))  # the duration of a partition
                for sender, to in lost:
                    sender.find(to)
                mended = loop.time()
                try:
                    await healed(system, lines)
                except AssertionError as error:
                    raise AssertionError(f"{name}: {error}\n{system.logs()}") from error
                took[name] = loop.time() - mended
                print(f"\n{name}, cut for {SECONDS:g} s: all is well after {took[name]:.1f} s", flush=True)
        report = await lines.judged()
    assert report.clean, report
