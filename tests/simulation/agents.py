"""The nodes of a simulated plane: hosts whose processes outlive their agents.

The deciding parts of an agent are real (step, assignments, reports, session); the parts that touch processes are
simulated.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keelman.agent.assignments import Assignments
from keelman.agent.reporter import Reporter
from keelman.agent.session import StateSessions
from keelman.agent.step import Action, KillCause, StepGoal, WorkloadStep, next_step
from keelman.agent.trust.trust import StateLink
from keelman.agent.workloads.local import GOALS, Local
from keelman.api.node.v1.node_pb2 import NodeFigures
from keelman.api.node.v1.session_service_pb2 import Assignments as Message
from keelman.api.node.v1.session_service_pb2 import OpenSessionRequest, Registration
from keelman.runtime.processes.children import ChildRecord, Exit
from keelman.runtime.supervise import supervise
from simulation.network import Stream
from simulation.plane import StateService, World
from support.fake_time import FakeProcess

GRACE_SECONDS = 5.0


@dataclass(slots=True, eq=False)
class Child:
    """A process of a host. It has a pid, as a child process of the agent has."""

    pid: int
    name: str
    uid: str
    generation: int
    ready_at: float
    """When it begins to pass its health check."""
    is_alive: bool = True
    exit: Exit | None = None
    on_end: Callable[[], Any] | None = None


@dataclass(slots=True, eq=False)
class Host:
    """A host: its processes, the content of its disk, and its agent."""

    world: World
    chance: random.Random
    name: str
    address: str
    folder: Path
    states: list[StateService]
    cpus: int = 4
    children: dict[str, Child] = field(default_factory=dict)
    records: dict[str, ChildRecord] = field(default_factory=dict)
    agent: FakeProcess | None = None
    agents: int = 0
    is_lost: bool = False
    _pids: Any = field(default_factory=lambda: itertools.count(100))

    def start_agent(self) -> None:
        """Starts its agent, which adopts the running processes."""
        if self.agent is None and not self.is_lost:
            self.agents += 1
            self.agent = FakeProcess(self.world.loop, self.name)
            self.agent.start(Agent(self).run())

    def kill_agent(self, *, loudly: bool = True) -> None:
        """Kills the agent as `kill -9` does; the processes that it started keep running."""
        agent, self.agent = self.agent, None
        if agent is not None:
            agent.die()
            self.world.network.forget(agent, loudly=loudly)
        for child in self.children.values():
            child.on_end = None

    def lose(self) -> None:
        """Cuts the host's power without a message to any peer."""
        self.is_lost = True
        self.kill_agent(loudly=False)
        for child in list(self.children.values()):
            self.end(child, None)

    def power_on(self) -> None:
        """Powers the host on, with the content of its disk."""
        self.is_lost = False
        self.start_agent()

    def launch(self, record: ChildRecord) -> Child:
        """Starts a process."""
        ready = self.world.loop.time() + 0.2 + self.chance.random() * 3.0
        child = Child(next(self._pids), record.name, record.uid, record.generation, ready)
        self.world.rules.started(self.name, child.name, child.uid, child.generation, self.children.get(child.name))
        self.children[record.name] = child
        self.records[record.name] = replace(record, pid=child.pid)
        return child

    def end(self, child: Child, code: int | None) -> None:
        """Ends a process."""
        if not child.is_alive:
            return
        child.is_alive, child.exit = False, Exit(code)
        if self.children.get(child.name) is child:
            del self.children[child.name]
        self.world.rules.ended(self.name, child.name, child.uid, child.generation)
        if child.on_end is not None:
            child.on_end()

    def end_after(self, child: Child, seconds: float, code: int | None) -> None:
        """Ends a process after a delay, even if the agent dies meanwhile."""
        self.world.loop.call_later(seconds, self.end, child, code)


class _Figures:
    """The host's figures in a heartbeat."""

    def take(self) -> NodeFigures:
        """Returns constant figures."""
        return NodeFigures(cpus_used=0.5, memory_available_bytes=4 << 30, disk_free_bytes=1 << 40, load=0.1)


class _Channel:
    """A channel from a host's agent to a state service, as the stub of its sessions uses it."""

    def __init__(self, host: Host, address: str) -> None:
        self._host, self._address = host, address

    def stream_stream(self, *_: Any, **__: Any) -> Callable[[], Stream]:
        """Opens a session."""
        return self._open

    def _open(self) -> Stream:
        host, world = self._host, self._host.world
        stream = Stream(world.network, host.name, self._address)
        stream.client_process = host.agent
        state = next(state for state in host.states if state.name == self._address)

        def heard(message: OpenSessionRequest) -> None:
            if message.WhichOneof("message") != "registration":  # the state service may refuse it
                world.rules.heard(host.name, state.name)

        stream.on_request = heard
        world.loop.call_later(world.network.delay(), self._arrive, stream, state)
        return stream

    def _arrive(self, stream: Stream, state: StateService) -> None:
        network = self._host.world.network
        if network.is_cut(stream.client, state.name) or network.is_cut(state.name, stream.client):
            self._host.world.loop.call_later(1.0, self._arrive, stream, state)
        elif not state.open_session(stream):
            stream.break_off(client=True, server=False)


@dataclass(frozen=True, slots=True)
class _Link(StateLink):
    """The link of a host's agent, over the simulated network."""

    host: Any = None

    @asynccontextmanager
    async def channel(self, address: str) -> AsyncIterator[_Channel]:  # type: ignore[override]
        yield _Channel(self.host, address)


class Agent:
    """One run of an agent's process."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.loop = host.world.loop
        self.assignments = Assignments(host.folder / "assignments.json")
        self.reporter = Reporter()
        self.locals: dict[str, Local] = {}
        self._busy: set[str] = set()
        self._confirmed = False
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Runs until its process dies."""
        self.assignments.load()
        self._adopt()
        host = self.host
        registration = Registration(
            node=host.name, agent_address=f"{host.address}:7420", cpus=host.cpus, memory_bytes=16 << 30,
            version="simulated", incarnation=f"{host.name}-{host.agents}",
        )  # fmt: skip
        addresses = [state.name for state in host.states]
        first = host.chance.randrange(len(addresses))
        in_turn = ",".join(addresses[first:] + addresses[:first])
        figures: Any = _Figures()
        sessions = StateSessions(
            in_turn, registration, self.reporter, self.assign, figures, lambda _: None, _Link(host=host)
        )
        await supervise(self._steps, sessions.run)

    def _adopt(self) -> None:
        """Adopts processes, as the supervisor and its launcher do."""
        for name in sorted({*self.assignments.workloads, *self.host.records}):
            local = self._known(name)
            record = self.host.records.get(name)
            if record is not None:
                local.record = record
                child = self.host.children.get(name)
                if child is not None:
                    self._follow(local, child)
                elif record.ended:
                    local.swept = False
                elif record.pid:
                    local.note_end(Exit(None), "", self.loop.time(), seen=False)
                    self._keep_end(local)
            self._report(local)

    def _known(self, name: str) -> Local:
        local = self.locals[name] = Local(name, self.host.folder / name)
        self._aim(local)
        return local

    def assign(self, message: Message) -> None:
        """Takes assignments, as the supervisor does."""
        self.assignments.apply(message)
        self._confirmed = self._confirmed or message.complete
        for name in self.assignments.workloads:
            if name not in self.locals:
                self._known(name)
        for local in list(self.locals.values()):
            self._aim(local)
            self._forget_if_over(local)
        self._news.set()

    def _aim(self, local: Local) -> None:
        workload = self.assignments.workloads.get(local.name)
        if workload is None:
            local.goal = StepGoal.STOPPED if self._confirmed else StepGoal.UNTOUCHED
            return
        if local.plan != (workload.uid, workload.generation):
            local.start_at, local.failures = 0.0, 0
        local.workload = workload
        local.goal = GOALS.get(workload.goal, StepGoal.UNTOUCHED)

    def _forget_if_over(self, local: Local) -> None:
        present = local.name in self.assignments.workloads
        if self._confirmed and not present and local.child is None and local.swept and local.name not in self._busy:
            self.locals.pop(local.name, None)
            self.reporter.forget(local.name)

    def _report(self, local: Local) -> None:
        if local.name in self.locals:
            self.reporter.put(local.name, local.status(draining=False))
            self._forget_if_over(local)

    async def _steps(self) -> None:
        """Steps all workloads until each has nothing to do for now."""
        while True:
            self._news.clear()
            until = [self._step(local) for local in list(self.locals.values()) if local.name not in self._busy]
            end = min((time for time in until if time is not None), default=None)
            if end is not None and end <= self.loop.time():
                continue
            try:
                async with asyncio.timeout_at(end):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _step(self, local: Local) -> float | None:
        self._report(local)
        step = next_step(local.wanted(), local.seen(), self.loop.time())
        if step.action in (Action.NOTHING, Action.WAIT):
            return step.until
        self._do(step, local)
        return self.loop.time()

    def _do(self, step: WorkloadStep, local: Local) -> None:
        match step.action:
            case Action.PREPARE:
                self._busy.add(local.name)
                assert self.host.agent is not None
                self.host.agent.start(self._prepare(local))
            case Action.START:
                local.prepared = None
                record = local.new_record(())
                self._follow(local, self.host.launch(record))
                local.killed, local.record = None, self.host.records[local.name]
            case Action.STOP:
                local.kill_at = self.loop.time() + GRACE_SECONDS
                if self.host.chance.random() < 0.95:
                    self.host.end_after(self._child(local), self.host.chance.random() * 3.0, 0)
            case Action.KILL:
                local.killed, local.kill_at = step.cause or KillCause.GRACE, self.loop.time() + 1.0
                self.host.end_after(self._child(local), 0.05, -9)
            case Action.SWEEP:
                local.swept = True
            case Action.REMOVE:
                local.removed, local.record = True, None
                self.host.records.pop(local.name, None)
            case other:
                raise AssertionError(other)

    async def _prepare(self, local: Local) -> None:
        """Writes files and probes ports: this takes time, and another plan may arrive meanwhile."""
        plan = local.plan
        await asyncio.sleep(self.host.chance.random() * 0.3)
        if self.host.world.rules.is_disturbed and self.host.chance.random() < 0.03:
            local.could_not_start("PORT_TAKEN", "the port is taken", self.loop.time())
        else:
            local.removed, local.prepared_plan = False, plan
        self._busy.discard(local.name)
        self._news.set()

    def _child(self, local: Local) -> Child:
        child: Any = local.child
        assert isinstance(child, Child)
        return child

    def _follow(self, local: Local, child: Child) -> None:
        """Watches a process, of its own or adopted."""
        local.child = child  # type: ignore[assignment]
        context = contextvars.copy_context()
        child.on_end = lambda: self.loop.call_soon(self._ended, local, child, context=context)
        self.loop.call_at(max(child.ready_at, self.loop.time()), self._ready, local, child)

    def _ready(self, local: Local, child: Child) -> None:
        if local.child is child and self._is_mine(child) and local.note_health(True, self.loop.time()):
            self._report(local)
            self._news.set()

    def _is_mine(self, child: Child) -> bool:
        return child.is_alive and child.on_end is not None

    def _ended(self, local: Local, child: Child) -> None:
        local.note_end(child.exit or Exit(None), "", self.loop.time(), seen=True)
        self._keep_end(local)
        self._news.set()

    def _keep_end(self, local: Local) -> None:
        if local.record is not None:
            local.record = self.host.records[local.name] = replace(local.record, ended=True)
