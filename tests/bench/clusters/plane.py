"""Many nodes' agents at one state service with default time-outs: they come, and come back after it was killed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import structlog

from bench.clusters.state_scale import BROKERS, LIMITS, Size, _fill
from bench.measuring.figures import Figure, alone
from keelman.agent.reporter import Reporter
from keelman.agent.session import StateSessions
from keelman.agent.trust.trust import StateLink
from keelman.api.node.v1 import node_pb2
from keelman.api.node.v1 import workload_pb2 as pb
from keelman.api.node.v1.session_service_pb2 import Assignments, Registration
from keelman.rpc.channels import Channel, channel
from keelman.rpc.health import is_serving
from keelman.runtime.processes.ports import free_ports
from keelman.state.executor import Executor
from support.eventually import eventually
from support.state.stores import open_store

QUIET_SECONDS = 30.0
"""How long the installation is watched after each event."""
MEMORY_SECONDS = 5.0
"""How often an agent reports another use of memory."""
MOST_SECONDS = 60.0
JOIN_GOAL, BACK_GOAL, NONE_GOAL = "<= 20", "<= 10", "<= 0"


async def measured(name: str, nodes: int, folder: Path, say: Callable[[str], None]) -> list[Figure]:
    """The first join of all agents, whose workloads have just begun to run; their return after the service was killed;
    and a second in which nothing passes between them and the service."""
    folder.mkdir(parents=True, exist_ok=True)
    url, keys = str(folder / "state.db"), folder / "secrets.key"
    async with open_store(url, key_file=keys) as store:
        planner = Executor(store, LIMITS, lambda node: node)
        store.listen(planner.changed)
        await _fill(store, Size(nodes), "127.0.0.1:9")
        await planner.reconcile()
        workloads = len(store.snapshot.workloads)
    say(f"{name}: {workloads:,} workloads are placed on {nodes:,} nodes")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    plane = _Plane(folder, url, keys, nodes, say)
    figures: list[Figure] = []
    await plane.start()
    async with plane.agents():
        for event, goal, happen in (
            ("join", JOIN_GOAL, None),
            ("back", BACK_GOAL, plane.kill),
            ("stall", "", plane.stall),
        ):
            figures += await plane.after(f"{name}-{event}", goal, happen)
        placed = {name: agent.node for agent in plane.all for name in agent.workloads}
        assert len(placed) == workloads, f"{len(placed)} workloads are with agents"
    await plane.end()
    return figures


class _Plane:
    """The state service, a process of its own, and the agents, all in this process."""

    def __init__(self, folder: Path, url: str, keys: Path, nodes: int, say: Callable[[str], None]) -> None:
        self._folder, self._url, self._keys, self._port, self._say = folder, url, keys, free_ports(1)[0], say
        self.all = [_Agent(f"node-{number:05d}", number, f"127.0.0.1:{self._port}") for number in range(nodes)]
        self._child: Any = None
        self._tasks: list[asyncio.Future[None]] = []
        self._log = folder / "state.log"

    async def start(self) -> None:
        """Starts the service with its default time-outs; returns once it serves."""
        flags = (
            "--home", str(self._folder), "--port", str(self._port), "--database", self._url, "--key-file",
            str(self._keys), "--events-broker-cluster", BROKERS,
        )  # fmt: skip
        command = [sys.executable, *os.environ.get("KEELMAN_BENCH_PROFILE", "").split(), "-m", "keelman.state", "run"]
        with self._log.open("ab") as log:
            self._child = await asyncio.create_subprocess_exec(
                *command, *flags, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )
        await eventually(lambda: is_serving(f"127.0.0.1:{self._port}"), what="state serves", seconds=60)

    @contextlib.asynccontextmanager
    async def agents(self) -> AsyncIterator[None]:
        """Runs all agents for the block."""
        self._tasks = tasks = [
            asyncio.ensure_future(part) for agent in self.all for part in (agent.sessions.run(), agent.live())
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def kill(self) -> None:
        """Kills the service and starts it again at once."""
        self._child.kill()
        await self._child.wait()
        for agent in self.all:
            agent.reported = False
        await self.start()

    async def stall(self) -> None:
        """Stops the service for a second, in which nothing passes."""
        self._child.send_signal(signal.SIGSTOP)
        await asyncio.sleep(1)
        self._child.send_signal(signal.SIGCONT)

    async def after(self, name: str, goal: str, happen: Callable[[], Any] | None) -> list[Figure]:
        """Seconds from an event until all agents have reported, and what happened meanwhile and in some time after.

        Without a goal the sessions stay, so there is no time of a return.
        """
        read, begun = self._log.stat().st_size, time.monotonic()
        placed = {name: agent.node for agent in self.all for name in agent.workloads}
        if happen is not None:
            await happen()
        served = time.monotonic() - begun
        deadline = begun + MOST_SECONDS
        while time.monotonic() < deadline and not all(agent.reported for agent in self.all):
            await asyncio.sleep(0.05)
            for task in self._tasks:
                if task.done():
                    task.result()
        took = time.monotonic() - begun
        missing = sum(not agent.reported for agent in self.all)
        self._say(f"{name}: {took:.1f} s until all have reported, {served:.1f} s of them until the service served")
        await asyncio.sleep(QUIET_SECONDS)
        with self._log.open(encoding="utf-8", errors="replace") as file:
            file.seek(read)
            text = re.sub(r"\x1b\[[0-9;]*m", "", file.read())
        now = {name: agent.node for agent in self.all for name in agent.workloads}
        moved = sum(now.get(workload) != node for workload, node in placed.items())
        counts = {
            "closed": len(re.findall(r"\bsession_closed\b", text)),
            "offline": len(re.findall(r"\bnode_offline\b", text)),
            "moved": moved + len(re.findall(r"\bplanned\b.*workload=", text)),
        }
        self._say(f"{name}: {counts}, {missing} never reported")
        times = [alone(name, "s", [took], took if not missing else MOST_SECONDS, goal)] if goal else []
        return [
            *times,
            *(alone(f"{name}-{what}", "", [count], count, NONE_GOAL) for what, count in counts.items()),
        ]

    async def end(self) -> None:
        """Ends the service."""
        self._child.terminate()
        await self._child.wait()


class _Agent:
    """One node's link to the state service, the agent's own; its workloads only say that they run."""

    def __init__(self, node: str, number: int, address: str) -> None:
        self.node = node
        self.workloads: set[str] = set()
        self.reported = False
        self._reporter = _Reporter(self)
        self._pids = random.Random(number)
        registration = Registration(
            node=node, agent_address=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:7420", cpus=64,
            memory_bytes=256 << 30, version="bench", incarnation=node,
        )  # fmt: skip
        figures: Any = _Figures()
        self.sessions = StateSessions(
            address, registration, self._reporter, self._assign, figures, lambda secrets: None, _OwnLink()
        )

    async def live(self) -> None:
        """Reports another use of memory now and then, as supervisors do."""
        while True:
            await asyncio.sleep(MEMORY_SECONDS * (0.5 + self._pids.random()))
            for name in self.workloads:
                status = pb.WorkloadStatus()
                status.CopyFrom(self._reporter.statuses[name])
                status.memory_bytes = self._pids.randrange(100, 200) << 20
                self._report(name, status)

    def _assign(self, message: Assignments) -> None:
        if message.complete:
            for name in self.workloads - {workload.name for workload in message.workloads}:
                self._forget(name)
        for name in message.removed:
            self._forget(name)
        for workload in message.workloads:
            self.workloads.add(workload.name)
            before = self._reporter.statuses.get(workload.name)
            if before is None or before.generation != workload.generation:
                status = pb.WorkloadStatus(
                    state=pb.WORKLOAD_STATE_RUNNING,
                    generation=workload.generation,
                    pid=self._pids.randrange(2, 1 << 22),
                )
                status.start_time.GetCurrentTime()
                self._report(workload.name, status)

    def _report(self, name: str, status: pb.WorkloadStatus) -> None:
        self._reporter.statuses[name] = status
        self._reporter.put(name, status)

    def _forget(self, name: str) -> None:
        self.workloads.discard(name)
        self._reporter.statuses.pop(name, None)
        self._reporter.forget(name)


class _Reporter(Reporter):
    """The agent's reporter, which also notes when all workloads were reported in a session."""

    def __init__(self, agent: _Agent) -> None:
        super().__init__()
        self._agent = agent
        self.statuses: dict[str, pb.WorkloadStatus] = {}

    def acknowledge(self, number: int) -> bool:
        is_last = super().acknowledge(number)
        if is_last and self._agent.workloads:
            self._agent.reported = True
        return is_last


class _OwnLink(StateLink):
    """Gives each agent a connection of its own, as on a host of its own."""

    def channel(self, address: str) -> Channel:
        return channel(address, apart=True)


class _Figures:
    def take(self) -> node_pb2.NodeFigures:
        return node_pb2.NodeFigures(cpus_used=1.0, memory_available_bytes=200 << 30, disk_free_bytes=1 << 40)
