"""The Ohara API: the time of each call with a hundred worker clusters, the start of a new one, and many clients."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.measuring.figures import Figure, alone, percentile
from support.cli.system import Keelman
from support.eventually import eventually
from support.gateway.ohara.clients import OharaWorld, brokers, ohara_world
from support.gateway.ohara.system import ADDRESSES, OharaSystem, ohara_system

CLUSTERS = 100
SAMPLES = 200
"""The samples of each call."""
CLIENTS = 200
RUNNING = ("start", "stop")
"""Calls after which a cluster is not to be deleted at once."""
CALL_GOAL, START_GOAL = "<= 50", "<= 4"
LOOK_SECONDS = 0.01
Say = Callable[[str], None]


@asynccontextmanager
async def _filled(folder: Path, say: Say) -> AsyncIterator[OharaWorld]:
    """State, gateway, obedient agents, a broker cluster, a hundred worker clusters, connectors and pipelines.

    Three of the worker clusters run; there are as many connectors and pipelines as clusters.
    """
    folder.mkdir(parents=True)
    async with ohara_world(folder) as world:
        await brokers(world.js, "bk")
        for number in range(CLUSTERS):
            await world.js.create(
                "workers", name=f"wk{number}", nodeNames=["node00", "node01"], brokerClusterKey="bk", tags={"n": number}
            )  # fmt: skip
        for number in range(3):
            await world.js.act("workers", f"wk{number}", "start")
            await world.js.reaches("workers", f"wk{number}", "RUNNING")
        await world.js.create("topics", name="t", brokerClusterKey="bk")
        for number in range(CLUSTERS):
            settings = {"workerClusterKey": "wk0", "topicKeys": ["t"], "connector.class": "FileStreamSource"}
            await world.js.create("connectors", name=f"c{number}", tags={"n": number}, **settings)
            ends = [{"kind": "connector", "name": f"c{number}"}, {"kind": "topic", "name": "t"}]
            await world.js.create("pipelines", name=f"p{number}", endpoints=ends)
        say(f"ohara: {CLUSTERS} worker clusters, connectors and pipelines are stored")
        yield world


def _calls(number: int) -> Mapping[str, tuple[str, str, Any]]:
    """One of each call, in an order in which each is legal."""
    fields = {"name": f"made{number}", "nodeNames": ["node00"], "brokerClusterKey": "bk"}
    stored = f"wk{number % (CLUSTERS - 3) + 3}"
    return {
        "list": ("GET", "/workers", None),
        "filter": ("GET", f'/workers?state=none&tags={{"n":{number % CLUSTERS}}}', None),
        "get": ("GET", f"/workers/{stored}", None),
        "create": ("POST", "/workers", fields),
        "update": ("PUT", f"/workers/made{number}", {"tags": {"a": "b"}, "xmx": 3000}),
        "add-node": ("PUT", f"/workers/made{number}/node01", None),
        "remove-node": ("DELETE", f"/workers/made{number}/node00", None),
        "start": ("PUT", f"/workers/made{number}/start", None),
        "stop": ("PUT", f"/workers/made{number}/stop?force=true", None),
        "delete": ("DELETE", f"/workers/made{number}", None),
        "containers": ("GET", "/containers/wk0", None),
        "nodes": ("GET", "/nodes", None),
        "brokers": ("GET", "/brokers", None),
        "zookeepers": ("GET", "/zookeepers", None),
        "topics": ("GET", "/topics", None),
        "connectors": ("GET", "/connectors", None),
        "pipelines": ("GET", "/pipelines", None),
        "files": ("GET", "/files", None),
        "object-put": ("PUT", f"/objects/o{number % 20}", {"stage": number}),
        "object-get": ("GET", f"/objects/o{number % 20}", None),
        "settings": ("GET", "/inspect/workers", None),
    }


async def calls(folder: Path, say: Say) -> list[Figure]:
    """Each call's 99th percentile. A cluster that was started is deleted once its workers have ended."""
    took: dict[str, list[float]] = {}
    async with _filled(folder, say) as world, httpx.AsyncClient(base_url=world.v0, trust_env=False) as client:
        for number in range(-10, SAMPLES):
            for name, (method, path, body) in _calls(number % 10_000).items():
                if name == "delete":
                    await world.js.reaches("workers", f"made{number % 10_000}", None, every=LOOK_SECONDS)
                begun = time.perf_counter()
                answer = await client.request(method, path, json=body)
                seconds = time.perf_counter() - begun
                assert answer.status_code in (200, 202, 204), f"{name}: {answer.status_code} {answer.text}"
                if number >= 0:  # not the first ones, in which much is loaded
                    took.setdefault(name, []).append(seconds * 1000)
    figures = [alone(f"ohara-calls-{name}", "ms", t, percentile(t, 0.99), CALL_GOAL) for name, t in took.items()]
    for figure in figures:
        say(f"{figure.name}: p99 {figure.ours:.1f} ms, median {statistics.median(took[figure.name[12:]]):.1f} ms")
    return figures


async def clients(folder: Path, say: Say) -> list[Figure]:
    """Many clients at once, each with a connection and a worker cluster of its own, and objects that they share."""
    statuses: Counter[int] = Counter()
    took: list[float] = []
    failed: Counter[str] = Counter()
    async with _filled(folder, say) as world:

        async def one(number: int) -> None:
            async with httpx.AsyncClient(base_url=world.v0, trust_env=False, timeout=60) as client:
                for name, (method, path, body) in _calls(number).items():
                    if name in RUNNING:
                        continue
                    begun = time.perf_counter()
                    answer = await client.request(method, path, json=body)
                    took.append((time.perf_counter() - begun) * 1000)
                    statuses[answer.status_code] += 1
                    if answer.status_code >= 400:
                        failed[f"{name}: {answer.status_code} {answer.text[:200]}"] += 1

        begun = time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(CLIENTS)))
        rate = len(took) / (time.perf_counter() - begun)
    say(f"ohara-clients: {rate:.0f} calls a second, {dict(statuses)} {dict(failed)}")
    refused = float(sum(count for status, count in statuses.items() if status >= 500))
    return [
        alone("ohara-clients-5xx", "answers", [refused], refused, "<= 0"),
        alone("ohara-clients-rate", "calls/s", [rate], rate, ""),
        alone("ohara-clients-p99", "ms", took, percentile(took, 0.99), ""),
    ]


async def start(folder: Path, rounds: int, say: Say) -> list[Figure]:
    """The time from POST to RUNNING with both nodes alive, on real nodes and brokers.

    The first one, with which the nodes' Spark services start, has a row of its own.
    """
    took: list[float] = []
    async with ohara_system(Keelman(folder)) as system:
        for turn in range(rounds + 1):
            took.append(await _started(system, f"wk{turn}"))
            say(f"ohara-start {turn}/{rounds}: {took[-1]:.2f} s")
            await system.js.without("workers", f"wk{turn}")
    first, *others = took
    return [
        alone("ohara-start-first", "s", [first], first, ""),
        alone("ohara-start", "s", others, statistics.median(others), START_GOAL),
    ]


async def _started(system: OharaSystem, name: str) -> float:
    nodes = list(ADDRESSES)
    begun = time.monotonic()
    await system.js.create("workers", name=name, nodeNames=nodes, brokerClusterKey="default")
    await system.js.act("workers", name, "start")

    async def runs() -> bool:
        answer = await system.js.get("workers", name)
        return answer.get("state") == "RUNNING" and sorted(answer["aliveNodes"]) == nodes

    await eventually(runs, every=LOOK_SECONDS, what=f"{name} runs on both nodes")
    return time.monotonic() - begun
