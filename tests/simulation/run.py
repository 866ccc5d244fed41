"""One simulation: a plane, its nodes and users by a seed, disturbed for a while and then left undisturbed."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import shutil
import tempfile
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import structlog

from keelman.state.database.database import sqlite_engine
from keelman.state.database.migrations.migrate import migrate
from keelman.state.database.sealing import Sealer
from keelman.state.planning.planner import make_plan
from keelman.state.resources.snapshot import NODE, WORKER_CLUSTER, WORKLOAD
from keelman.state.secrets.sealed_rows import open_sealer
from simulation.agents import Host
from simulation.database import Server
from simulation.disturbances import Disturbances
from simulation.network import Network
from simulation.plane import LIMITS, StateService, World
from simulation.rules import Broken, Rules, asked_of
from simulation.users import ClusterUser, Operator
from support.fake_time import FakeTimeLoop

MEMORY = Path("/dev/shm")
QUIET_SECONDS = 240.0
"""Within this time after the last disturbance all goals are reached."""
MOST_LABELLED = 50
"""At most so many nodes get labels, one after the other, which takes time."""
LOOK_SECONDS = 1.0
SOME, MANY = 10, 500
"""One seed of `SOME` has 20 to 50 nodes, one of `MANY` has 1,000."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of the plane, and for how many seconds it is disturbed."""

    nodes: int
    clusters: int
    states: int
    seconds: float

    @classmethod
    def of(cls, seed: int) -> Size:
        """The size for a seed: mostly small, so that many seeds can run."""
        chance = random.Random(f"size {seed}")
        states = chance.choice((1, 1, 1, 2, 2, 3))
        if seed % MANY == 0:
            return cls(1000, 40, states, 15.0)
        nodes = chance.randint(20, 50) if seed % SOME == 0 else chance.randint(3, 6)
        return cls(nodes, chance.randint(1, 3), states, chance.uniform(8.0, 25.0))


@dataclass(slots=True)
class Result:
    """The result of a seed."""

    seed: int
    size: Size
    broken: list[Broken]
    trace: list[tuple[float, str, str]]
    seconds: float
    """In fake time."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Equal for two equal runs."""
        return hashlib.sha256(repr(self.trace).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Template:
    """An empty database, and the key that seals its secrets."""

    path: Path
    sealer: Sealer


@cache
def _template(folder: Path) -> Template:
    """An empty database, migrated once for all seeds of a process."""
    path = folder / "template.db"

    async def made() -> Sealer:
        engine = sqlite_engine(path)
        await migrate(engine)
        sealer = await open_sealer(engine, folder / "secrets.key")
        await engine.dispose()
        return sealer

    return Template(path, asyncio.run(made()))


def prepare(folder: Path) -> Template:
    """The parts that simulations share."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, _only_errors],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
    )
    return _template(folder)


KEPT: list[_Simulation] = []
"""Kept until the process ends: objects of dead processes would report errors when they are collected."""
ERRORS: list[str] = []
"""The logged errors, of which there may be none."""


def _only_errors(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    ERRORS.append(str(dict(event)))
    raise structlog.DropEvent


def simulate(seed: int, template: Template, size: Size | None = None) -> Result:
    """Runs one seed."""
    size = size or Size.of(seed)
    random.seed(seed)
    ERRORS.clear()
    root = tempfile.mkdtemp(prefix="keelman-simulation-", dir=MEMORY if MEMORY.is_dir() else None)
    try:
        KEPT.append(_Simulation(seed, size, Path(root), template))
        return KEPT[-1].result()
    finally:
        shutil.rmtree(root, ignore_errors=True)


class _Simulation:
    def __init__(self, seed: int, size: Size, folder: Path, template: Template) -> None:
        self.seed, self.size = seed, size
        loop = self.loop = FakeTimeLoop()
        path = folder / "state.db"
        shutil.copy(template.path, path)
        network = Network(loop, random.Random(f"network {seed}"))
        server = Server(loop, network, random.Random(f"database {seed}"), path)
        self.rules = Rules(loop)
        self.world = World(loop, network, server, self.rules, size.states == 1, template.sealer)
        self.states = [StateService(self.world, f"state-{n}") for n in range(size.states)]
        chance = random.Random(f"hosts {seed}")
        self.disks = {f"n{n:03}": chance.choice(("ssd", "hdd")) for n in range(size.nodes)}
        self.disks["n000"] = "ssd"  # so that the disk that clusters need exists
        self.hosts = [
            Host(
                self.world, random.Random(f"host {n} {seed}"), name, f"10.0.{n >> 8}.{n & 255}", folder / name,
                self.states, cpus=chance.choice((2, 4, 8)),
            )
            for n, name in enumerate(self.disks)
        ]  # fmt: skip
        self.operator = Operator(
            self.world, random.Random(f"operator {seed}"), "operator", self.states, nodes=list(self.disks)
        )
        self.users = [
            ClusterUser(
                self.world, random.Random(f"user {n} {seed}"), f"user-{n}", self.states, cluster=f"c{n}",
                most=min(3, size.nodes), selector=chance.choice(("", "", "ssd")),
            )
            for n in range(size.clusters)
        ]  # fmt: skip
        self.disturbances = Disturbances(
            self.world, random.Random(f"disturbances {seed}"), self.states, self.hosts,
            at_once=1 + size.nodes // 100 + size.nodes % 3,
        )  # fmt: skip

    def result(self) -> Result:
        try:
            self.loop.run(self._run(), most_seconds=self.size.seconds + 2 * QUIET_SECONDS)
        except Exception as error:
            self.rules.fail("no-crash", f"{type(error).__name__}: {error}")
        for problem in self.loop.problems[:3]:
            self.rules.fail("no-crash", f"{problem.get('message')}: {problem.get('exception')!r}")
        for error in ERRORS[:3]:
            self.rules.fail("no-crash", error)
        for at, what, words in self.rules.trace:
            if what == "state-ended" and "Unavailable" not in words:
                self.rules.fail("no-crash", f"at {at:.3f} s {words}")
        counts = {"processor milliseconds": int(time.process_time() * 1000)}
        for _, what, _ in self.rules.trace:
            counts[what] = counts.get(what, 0) + 1
        return Result(self.seed, self.size, self.rules.broken, self.rules.trace, self.loop.time(), counts)

    async def _run(self) -> None:
        for state in self.states:
            state.start()
        await self.operator.kafka()
        for host in self.hosts:
            host.start_agent()
        await asyncio.sleep(3.0)
        tasks = [self.loop.create_task(user.run()) for user in self.users]
        for node, disk in list(self.disks.items())[:MOST_LABELLED]:
            while node not in self.rules.truth[NODE]:  # noqa: ASYNC110  # it has yet to join
                await asyncio.sleep(LOOK_SECONDS)
            await self.operator.label(node, disk)
        tasks.append(self.loop.create_task(self.operator.run()))
        await self.disturbances.run(self.size.seconds)
        self.rules.is_disturbed = False
        self.rules.note("quiet", "")
        for task in tasks:
            await task
        await self._converges()

    async def _converges(self) -> None:
        for node in self.disks:
            if self.rules.asked.get((NODE, node), {(False, False)}) != {(False, False)}:
                await self.operator.mark(node, "UncordonNode")
        self.rules.check_asked()
        end = self.loop.time() + QUIET_SECONDS
        while not_yet := self._not_yet():
            if self.rules.broken:
                return
            if self.loop.time() >= end:
                self.rules.fail("converges", not_yet)
                return
            await asyncio.sleep(LOOK_SECONDS)
        self.rules.note("settled", "")

    def _not_yet(self) -> str:
        """The goals that are not reached; empty if all are."""
        return self._not_yet_shown() or self._not_yet_wanted() or self._not_yet_on_hosts() or self._unplanned()

    def _not_yet_shown(self) -> str:
        for state in self.states:
            if state.store is None:
                return f"{state.name} is not up"
            if state.store.revision != self.rules.revision:
                return f"{state.name} is at {state.store.revision}, not at {self.rules.revision}"
        return ""

    def _not_yet_wanted(self) -> str:
        truth = self.rules.truth
        for name, node in truth[NODE].items():
            if str(node.state) != "ONLINE":
                return f"{name} is {node.state}"
            if node.spec.cordoned:
                return f"{name} is cordoned"
        for cluster in truth[WORKER_CLUSTER].values():
            request = asked_of(cluster)
            if request is None:
                return f"{cluster.name} is not gone"
            status, expected = cluster.status, request[1] if request[0] == "RUNNING" else 0
            if str(status.state) != request[0] or status.ready_workers != expected or status.rollout is not None:
                fits = "" if not cluster.note else f" ({cluster.note})"
                workers = f"{status.ready_workers} of {expected}{fits}"
                return f"{cluster.name} is {status.state} with {workers}: {status.message}"
        return ""

    def _not_yet_on_hosts(self) -> str:
        expected: dict[str, dict[str, Any]] = {host.name: {} for host in self.hosts}
        for workload in self.rules.truth[WORKLOAD].values():
            if str(workload.goal) == "RUNNING":
                expected[workload.node][workload.name] = (workload.uid, workload.generation)
        for host in self.hosts:
            answer = {name: (child.uid, child.generation) for name, child in host.children.items()}
            if answer != expected[host.name]:
                return f"{host.name} runs {answer}, is to run {expected[host.name]}"
        return ""

    def _unplanned(self) -> str:
        store = self.states[0].store
        assert store is not None
        plan = make_plan(store.snapshot, LIMITS)
        return "" if plan.is_empty else f"not planned yet: {plan}"
