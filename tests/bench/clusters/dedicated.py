"""Dedicated connectors on a warm node: the time of a create until it runs, of an update, and of a delete."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from bench.measuring.figures import Figure, alone
from keelman.api.connect.v1.dedicated_connector_pb2 import DedicatedCapacity
from keelman.rpc.channels import channel
from support.cli.system import Keelman
from support.state.dedicated import SUCCEEDED, Dedicated, file_source

Round: TypeAlias = Callable[[Dedicated, Path, str, int], Awaitable[dict[str, float]]]
GOALS = {"create": "<= 3", "update-config": "<= 5", "update-workers": "<= 5", "delete": ""}


async def measured(folder: Path, rounds: int, say: Callable[[str], None]) -> list[Figure]:
    """Each round has a connector of its own. The first create starts the node's Spark service and does not count."""
    return await in_rounds("dedicated", _round, GOALS, folder, rounds=rounds, say=say)


async def in_rounds(
    what: str, round: Round, goals: Mapping[str, str], folder: Path, *, rounds: int, say: Callable[[str], None]
) -> list[Figure]:
    """The figures of rounds with dedicated connectors on one system: seconds by the names of the goals."""
    folder.mkdir(parents=True)
    keelman = Keelman(folder / "home")
    took: dict[str, list[float]] = {name: [] for name in goals}
    try:
        await keelman.ok("up", "--detach", "--free-ports")
        servers = (await keelman.item("bc", "default"))["status"]["bootstrap_servers"]
        async with channel(keelman.system["gateway"]) as link:
            for turn in range(rounds):
                for name, seconds in (await round(Dedicated(link), folder, servers, turn)).items():
                    took[name].append(seconds)
                say(f"{what} {turn + 1}/{rounds}: " + ", ".join(f"{n} {took[n][-1]:.2f} s" for n in goals))
    finally:
        await keelman.cleaned()
    return [alone(f"{what}-{n}", "s", value, statistics.median(value), goals[n]) for n, value in took.items()]


async def _round(dedicated: Dedicated, folder: Path, servers: str, turn: int) -> dict[str, float]:
    name, config = f"c{turn}", file_source(folder / "in.txt", "t")
    if turn == 0:
        (folder / "in.txt").write_text("one\n")
        await _took(dedicated, dedicated.create("warm", config, servers))
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
