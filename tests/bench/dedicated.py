"""Dedicated connectors on a warm node: from the create until one runs, until an update is applied, until it is gone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.figures import Figure, alone
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.rpc.channels import channel
from support.dedicated_kit import SUCCEEDED, Dedicated, file_source
from support.system_kit import Keelman

GOALS = {"create": "<= 3", "update-config": "<= 5", "update-workers": "<= 5", "delete": ""}


async def measured(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Each round has a connector of its own; the first create, which starts the node's Spark service, counts for
    nothing."""
    folder.mkdir(parents=True)
    keelman = Keelman(folder / "home")
    (folder / "in.txt").write_text("one\n")
    took: dict[str, list[float]] = {name: [] for name in GOALS}
    try:
        await keelman.ok("up", "--detach", "--free-ports")
        servers = (await keelman.item("bc", "default"))["status"]["bootstrap_servers"]
        async with channel(keelman.system["gateway"]) as link:
            dedicated = Dedicated(link)
            await _took(dedicated, dedicated.create("warm", file_source(folder / "in.txt", "t"), servers))
            for turn in range(rounds):
                for name, seconds in (await _round(dedicated, folder, servers, f"c{turn}")).items():
                    took[name].append(seconds)
                say(f"dedicated {turn + 1}/{rounds}: " + ", ".join(f"{n} {took[n][-1]:.2f} s" for n in GOALS))
    finally:
        await keelman.cleaned()
    return [alone(f"dedicated-{n}", "s", found, statistics.median(found), GOALS[n]) for n, found in took.items()]


async def _round(dedicated: Dedicated, folder: Path, servers: str, name: str) -> dict[str, float]:
    config = file_source(folder / "in.txt", "t")
    return {
        "create": await _took(dedicated, dedicated.create(name, config, servers)),
        "update-config": await _took(dedicated, dedicated.update(name, config=config | {"topic": "other"})),
        "update-workers": await _took(dedicated, dedicated.update(name, capacity=DedicatedCapacity(count=2))),
        "delete": await _took(dedicated, dedicated.delete(name)),
    }


async def _took(dedicated: Dedicated, call: Awaitable[Any]) -> float:
    """Seconds until the operation of a call has succeeded."""
    begun = time.monotonic()
    operation = await dedicated.ended(await call, seconds=300)
    assert operation.state == SUCCEEDED, operation
    return time.monotonic() - begun
