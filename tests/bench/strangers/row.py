"""A gateway with an access file that strangers call: served callers' times, its memory, and what its guard costs."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from bench.measuring.figures import Figure, alone, compared, number, percentile
from bench.measuring.rounds import OURS, interleaved
from bench.measuring.systems import cpu_seconds, pss_mb
from keelman.model.access.roles import token_digest
from keelman.runtime.processes.ports import free_ports
from support.gateway.system import Process, System, running_system

RATE, FLOOD_SECONDS = 10_000.0, 60.0
STEPS = (1_000.0, 3_000.0)
"""Lower rates, measured before."""
LINES, MANY_LINES = 16, 64
"""The connections of each kind of stranger. Of the larger number those of gRPC have more calls open than may wait."""
ALONE_SECONDS, STEP_SECONDS, GUARD_SECONDS = 30.0, 10.0, 5.0
LOOK_SECONDS = 0.5
REST_SECONDS = 10.0
TOKEN = "token-of-ada"
MORE_MB = 105
"""100 MiB."""
BARE = "without the guard"
Say = Callable[[str], None]
Times = dict[str, list[float]]


class Flooded(NamedTuple):
    """What was measured while strangers called."""

    times: Times
    strangers: Counter[str]
    seconds: float
    cpu: float
    """The gateway's processor seconds."""
    memory: float
    """The gateway's largest PSS, in MB."""

    def rate(self, what: str) -> float:
        """Requests in a second that were `sent`, `refused`, ..."""
        return self.strangers[what] / self.seconds


async def measured(folder: Path, rounds: int, say: Say) -> list[Figure]:
    """All figures of the row."""
    folder.mkdir(parents=True)
    access = folder / "access.toml"
    access.write_text(f"[[token]]\nsha256 = '{token_digest(TOKEN)}'\nname = 'ada'\nrole = 'admin'\n")
    async with running_system(folder, None, {"access-file": str(access)}) as system:
        cost = await _guard(system, folder, rounds, say)
        return cost + await _strangers(system, say)


async def _strangers(system: System, say: Say) -> list[Figure]:
    gateway = _process(system.gateway)
    await _times(system, 5.0)
    before = pss_mb([gateway])
    cpu = cpu_seconds([gateway])
    quiet = await _times(system, ALONE_SECONDS)
    cpu = (cpu_seconds([gateway]) - cpu) / ALONE_SECONDS
    say(f"strangers: served callers alone: {_told(quiet)}; the gateway has {before:.0f} MB")
    for rate in STEPS:
        await _flooded(system, rate, STEP_SECONDS, LINES, say)
        await asyncio.sleep(REST_SECONDS / 2)
    full = await _flooded(system, RATE, FLOOD_SECONDS, LINES, say)
    await asyncio.sleep(REST_SECONDS)
    after = pss_mb([gateway])
    many = await _flooded(system, RATE, STEP_SECONDS, MANY_LINES, say)
    say(f"strangers: the gateway had {before:.0f} MB, at most {full.memory:.0f} MB, {after:.0f} MB afterwards")
    figures = [_beside(f"strangers-{api}-p99", full.times[api], quiet[api], 0.99, "<= 2") for api in quiet]
    figures += [_beside(f"strangers-{api}-p50", full.times[api], quiet[api], 0.5, "") for api in quiet]
    for what in ("sent", "refused", "turned_away", "unanswered", "given_up", "held_back"):
        figures.append(_alone(f"strangers-{what.replace('_', '-')}", "requests/s", full.rate(what)))
    figures += [
        _alone("strangers-memory", "MB more", full.memory - before, f"<= {MORE_MB}"),
        _alone("strangers-memory-after", "MB more", after - before),
        _alone("strangers-cpu", "% of a core", 100 * (full.cpu / full.seconds - cpu)),
    ]
    figures += [_beside(f"strangers-many-{api}-p99", many.times[api], quiet[api], 0.99, "") for api in quiet]
    figures.append(_alone("strangers-many-memory", "MB more", many.memory - before))
    return figures


async def _flooded(system: System, rate: float, seconds: float, lines: int, say: Say) -> Flooded:
    """What is measured while strangers send at this rate, over so many connections of each kind."""
    gateway = _process(system.gateway)
    most = 0.0

    async def look() -> None:
        nonlocal most
        while True:
            most = max(most, pss_mb([gateway]))
            await asyncio.sleep(LOOK_SECONDS)

    looking = asyncio.create_task(look())
    cpu, begun = cpu_seconds([gateway]), time.monotonic()
    try:
        flood = asyncio.create_task(_run("flood", *_ports(system.gateway), rate, seconds, lines))
        await asyncio.sleep(1.0)
        times = await _times(system, seconds - 2.0)
        kinds: dict[str, dict[str, int]] = await flood
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
    cpu, took = cpu_seconds([gateway]) - cpu, time.monotonic() - begun
    strangers = sum(map(Counter, kinds.values()), Counter[str]())
    result = Flooded(times, strangers, seconds, cpu, most)
    counted = ", ".join(f"{number(count / seconds)} {what}" for what, count in sorted(strangers.items()))
    say(
        f"strangers at {rate:,.0f}/s over {len(kinds) - 1} x {lines} connections: {_told(times)}; in a second {counted}"
    )
    say(f"  the gateway: {cpu / took:.2f} processors, {most:.0f} MB")
    for kind, counts in kinds.items():
        say(f"  {kind}: {', '.join(f'{value:,} {what}' for what, value in sorted(counts.items()))}")
    return result


async def _guard(system: System, folder: Path, rounds: int, say: Say) -> list[Figure]:
    """Calls of gRPC a second beside a gateway of the same state service without an access file: it has no guard."""
    ports = [str(port) for port in free_ports(2)]
    flags = {key: value for key, value in system.gateway.flags.items() if key != "access-file"}
    bare = Process("gateway", {**flags, "port": ports[0], "http-port": ports[1]}, folder / "bare.log")
    await bare.start()
    try:

        async def one(of: str) -> tuple[float, float]:
            gateway = system.gateway if of == OURS else bare
            cpu = cpu_seconds([_process(gateway)])
            rate = await _run("served", "most", *_ports(gateway), TOKEN, GUARD_SECONDS)
            return rate, 1000 * (cpu_seconds([_process(gateway)]) - cpu) / (rate * GUARD_SECONDS)

        def told(turn: int, of: str, value: tuple[float, float]) -> None:
            say(f"guard {turn + 1}: {of}: {value[0]:,.0f} calls/s, {value[1]:.3f} ms of a processor each")

        result = await interleaved(2 * rounds, [BARE], one, lambda _: 0.0, told, warm_up=1)
    finally:
        bare.stop()
    rates, cpus = ({of: [value[at] for value in values] for of, values in result.items()} for at in (0, 1))
    return [
        *compared("guard-calls", "calls/s", rates[OURS], {BARE: rates[BARE]}, ">= 0.97"),
        *compared("guard-cpu", "ms/call", cpus[OURS], {BARE: cpus[BARE]}, ""),
    ]


async def _times(system: System, seconds: float) -> Times:
    """The milliseconds of served callers' calls, by API."""
    times: Times = await _run("served", "paced", *_ports(system.gateway), TOKEN, seconds)
    return times


async def _run(module: str, *words: object) -> Any:
    """What a program of this package prints."""
    command = (sys.executable, "-m", f"bench.strangers.{module}", *map(str, words))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        printed, _ = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    if process.returncode:
        raise SystemError(f"{module} ended with {process.returncode}")
    return json.loads(printed)


def _ports(gateway: Process) -> tuple[str, str]:
    return gateway.flags["port"], gateway.flags["http-port"]


def _process(service: Process) -> psutil.Process:
    assert service.process is not None
    return psutil.Process(service.process.pid)


def _told(times: Times) -> str:
    return ", ".join(
        f"{api} p50 {statistics.median(took):.1f}, p99 {percentile(took, 0.99):.1f} ms" for api, took in times.items()
    )


def _alone(name: str, unit: str, value: float, limit: str = "") -> Figure:
    return alone(name, unit, [value], value, limit)


def _beside(name: str, loaded: list[float], quiet: list[float], share: float, goal: str) -> Figure:
    """A percentile of the times beside the same one without strangers."""
    mine, bare = percentile(loaded, share), percentile(quiet, share)
    return Figure(name, "ms", mine, bare, "without strangers", "", mine / bare, goal, 1, "")
