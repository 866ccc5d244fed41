"""A worker cluster over three agents of this machine: from the order to start until each worker answers REST."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from bench.measuring.figures import Figure, alone
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.state.clusters import in_state
from support.state.nodes import NODES, running_nodes
from support.state.service import Clients

LOOK_SECONDS = 0.05


async def measured(folder: Path, bootstrap: str, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Each round creates a cluster that is new to the brokers too and starts it.

    The nodes' Spark services start in the first round, which has a row of its own; it ends when they run.
    """
    folder.mkdir()
    took: list[float] = []
    async with running_nodes(folder, NODES, "--spark-idle-seconds", "60") as nodes:
        for node in NODES:
            nodes.start_agent(node)
        async with channel(f"127.0.0.1:{nodes.state.port}") as new_channel:
            clients = Clients(new_channel)
            await nodes.are_online(clients)
            await clients.create_external("kafka", bootstrap)
            for turn in range(rounds + 1):
                took.append(await _started(clients, f"c{turn}"))
                say(f"cluster-start {turn}/{rounds}: {took[-1]:.2f} s")
    first, *others = took
    return [
        alone("cluster-start-first", "s", [first], first, ""),
        alone("cluster-start", "s", others, statistics.median(others), "<= 3"),
    ]


async def _started(clients: Clients, name: str) -> float:
    """Seconds from the order to start until every worker lists its connectors; deletes the cluster afterwards."""
    await clients.create_workers(name, brokers="kafka", count=len(NODES))
    begun = time.monotonic()
    await clients.start_workers(name)
    async with httpx.AsyncClient() as client:

        async def answered() -> bool:
            workers = [w for n, w in (await clients.workloads()).items() if n.startswith(f"worker/{name}/")]
            if len(workers) < len(NODES):
                return False
            for worker in workers:
                try:
                    at = f"http://{worker.spec.worker.host}:{worker.spec.worker.port}/connectors"
                    if (await client.get(at)).status_code != httpx.codes.OK:
                        return False
                except httpx.TransportError:
                    return False
            return True

        await eventually(answered, every=LOOK_SECONDS, what=f"the workers of {name} answer")
    seconds = time.monotonic() - begun
    await in_state(clients, name, "RUNNING")  # with its Spark services
    await clients.delete_workers(name)

    async def gone() -> bool:
        return not any(n.startswith(f"worker/{name}/") for n in await clients.workloads())

    await eventually(gone, what=f"the workers of {name} have ended")
    return seconds
