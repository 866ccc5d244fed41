"""Brings each workload of the node to its wanted state, one step at a time, and drains the node."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import UTC, datetime
from pathlib import Path

from keelman.agent.assignments import Assignments
from keelman.agent.plugins import NodePlugins, files_of
from keelman.agent.reporter import Reporter
from keelman.agent.shipping.shipping import Shipping, ShippingLimits
from keelman.agent.step import Action, KillCause, StepGoal, drained_kinds, next_step
from keelman.agent.workloads.commands import prepared_plugins
from keelman.agent.workloads.fetching import Fetcher
from keelman.agent.workloads.health import HealthWatch
from keelman.agent.workloads.launcher import Launcher
from keelman.agent.workloads.limits import WATCHDOG, over_limit
from keelman.agent.workloads.local import GOALS, Local
from keelman.agent.workloads.logs import log_file
from keelman.agent.workloads.memory import over, tree_bytes
from keelman.agent.workloads.turns import StartTurns
from keelman.api.node.v1 import session_service_pb2
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState
from keelman.model.errors import KeelmanError, NotFound
from keelman.runtime.home import Home
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes import children
from keelman.runtime.supervise import Siblings, supervise, wait_or_stop

log = get_logger()
LOGS_SECONDS = 5.0
SAMPLE_SECONDS = 5.0
SAMPLE_SHARE = 0.01
"""The most use of one processor for measuring the workloads' memory: with hundreds of them it is measured less
often."""
WATCH_SECONDS = 1.0
FAULT_SECONDS = 5.0


class WorkloadLoop:
    """Keeps one workload: its loop wakes when its process ends, at `wake`, and when time is up."""

    def __init__(self, supervisor: Supervisor, local: Local) -> None:
        self.local = local
        self._supervisor = supervisor
        self._wake = asyncio.Event()
        self._health = HealthWatch(local, supervisor.home, self._health_changed)
        self._fetcher = Fetcher(local, supervisor.plugins, self._changed)
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Has the loop look at its workload, which may have changed."""
        self._wake.set()

    def begin(self, siblings: Siblings) -> None:
        """Starts the loop. Once."""
        self._task = siblings.start(self.run(), name=self.local.name)

    def end(self) -> None:
        """Ends the loop; the process runs on."""
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Runs until the workload is forgotten or the agent ends."""
        try:
            await supervise(self._steps, self._health.run, self._fetcher.run)
        finally:
            if self.local.child is not None:
                self.local.child.release()

    def _changed(self) -> None:
        self._supervisor.report(self.local)
        self.wake()

    def _health_changed(self) -> None:
        self._supervisor.launcher.note_ready(self.local)
        if self.local.healthy_since is not None:
            self._supervisor.turns.give_back(self.local.name)
        self._changed()

    def _process_ended(self) -> None:
        self._supervisor.launcher.note_end(self.local)
        self._supervisor.leave_for(self.local)
        self._changed()

    async def _steps(self) -> None:
        if self.local.child is not None:
            self.local.child.watch(self._process_ended)
        while True:
            self._wake.clear()
            self._supervisor.report(self.local)
            until = await self._step()
            if until is not None and until <= time.monotonic():
                continue
            await wait_or_stop(self._wake, None if until is None else until - time.monotonic())

    async def _step(self) -> float | None:
        """Does one step; returns the time of the next look, 0 for at once, None for after a change."""
        local, before = self.local, self.local.child
        step = next_step(local.wanted(), local.seen(), time.monotonic())
        if step.action is not Action.START and local.child is None:
            local.queued = False
            self._supervisor.turns.give_back(local.name)
        if step.action in (Action.NOTHING, Action.WAIT):
            return step.until
        if step.action is Action.FETCH:
            self._fetcher.begin()
            return 0.0
        if step.action is Action.START and (until := self._turn()) is not None:
            return until
        try:
            if step.action is Action.REMOVE:
                await self._supervisor.finish_log(local)
            if step.action is Action.START and local.tenant:
                await self._supervisor.limit_tenants()
            await self._supervisor.launcher.do(step, local)
        except (KeelmanError, OSError, TimeoutError) as error:
            text = error.message if isinstance(error, KeelmanError) else repr(error)
            local.note_fault(f"{step.action.value} failed: {text}")
            log.warning("step_failed", workload=local.name, step=step.action.value, error=text)
            return time.monotonic() + FAULT_SECONDS
        if local.child is not None and local.child is not before:
            local.child.watch(self._process_ended)
        return 0.0

    def _turn(self) -> float | None:
        """Returns None where it may start now; else the latest time of the next look."""
        local, turns = self.local, self._supervisor.turns
        until = turns.take(local.name, time.monotonic(), self.wake) if local.kind == "worker" else None
        local.queued = until is not None
        if local.queued:
            self._supervisor.report(local)
        return until


class Supervisor:
    """All workloads of the node, each with its loop."""

    def __init__(
        self,
        home: Home,
        launcher: Launcher,
        assignments: Assignments,
        reporter: Reporter,
        plugins: NodePlugins,
        *,
        unwell_seconds: float = 0.0,
        turns: StartTurns,
        shipping: Shipping | None = None,
    ) -> None:
        self.home = home
        self.shipping = shipping or Shipping(home, "", ShippingLimits(home.log_delivery))
        self.plugins = plugins
        self._unwell_seconds = unwell_seconds
        self.turns = turns
        self.launcher = launcher
        self._assignments = assignments
        self._reporter = reporter
        self._loops: dict[str, WorkloadLoop] = {}
        self._siblings: Siblings | None = None
        self._confirmed = False
        self._draining = False
        self._change = asyncio.Event()

    def adopt(self) -> None:
        """Finds the processes of an earlier agent. Called once, before `run`, so that the first report is true."""
        names = set(self._assignments.workloads)
        for file in sorted(self.home.workloads.glob("*/record.json")):
            record = children.read_record(file.parent, owner=self.launcher.record_owner)
            if record is not None:
                names.add(record.name)
        for name in sorted(names):
            local = self._local(name)
            self._loops[name] = WorkloadLoop(self, local)
            self._aim(local)
            self.launcher.adopt(local)
            self.report(local)

    async def run(self) -> None:
        """Runs until cancelled; the processes run on."""
        async with Siblings() as siblings:
            self._siblings = siblings
            self.shipping.begin(siblings, self._assignments.workloads.values(), self._log_problem)
            for loop in self._loops.values():
                loop.begin(siblings)
                if loop.local.child is None:
                    self.leave_for(loop.local)  # it may have died while no agent ran
            siblings.start(self._measure_memory(), name="memory")
            siblings.start(self._watch_memory(), name="watch of memory")
            siblings.start(self.plugins.keep(self._used_plugins), name="folders of plugins")
            while True:
                for loop in list(self._loops.values()):
                    await self.launcher.keep_log(loop.local)
                await asyncio.sleep(LOGS_SECONDS)

    def assign(self, message: session_service_pb2.Assignments) -> None:
        """Takes assignments. A workload that is no longer named is stopped, its files stay, and it is forgotten."""
        self._assignments.apply(message)
        self._confirmed = self._confirmed or message.complete
        self.shipping.follow(self._assignments.workloads.values())
        for name in self._assignments.workloads:
            if name not in self._loops:
                loop = self._loops[name] = WorkloadLoop(self, self._local(name))
                if self._siblings is not None:
                    loop.begin(self._siblings)
        for loop in self._loops.values():
            self._aim(loop.local)
            loop.wake()
        for name in [n for n, k in self._loops.items() if self._is_over(k.local)]:
            self._forget(name)

    def workloads(self) -> list[Workload]:
        """Returns all workloads as this node sees them now, in the order of their names."""
        workloads = []
        for name in sorted(self._loops):
            local = self._loops[name].local
            workload = Workload(name=name)
            if local.workload is not None:
                workload.CopyFrom(local.workload)
            workload.status.CopyFrom(local.status(draining=self._draining))
            workloads.append(workload)
        return workloads

    @property
    def all_run(self) -> bool:
        """Whether the state service has named this node's workloads, and all of them that shall run do."""
        return self._confirmed and all(
            loop.local.goal is not StepGoal.RUNNING
            or loop.local.state(draining=self._draining) == WorkloadState.WORKLOAD_STATE_RUNNING
            for loop in self._loops.values()
        )

    def log_of(self, name: str) -> Path:
        """Returns the log of a workload. Raises NotFound."""
        if name not in self._loops:
            names = ", ".join(sorted(self._loops)) or "none"
            raise NotFound(f"workload {name!r} is not on this node; it has {names}")
        return log_file(self._loops[name].local.folder)

    async def drain(self) -> list[str]:
        """Stops everything in good order and starts nothing any more. Returns the names of workloads that had to be
        killed."""
        log.info("draining")
        self._draining = True
        running = [k.local for k in self._loops.values() if k.local.child is not None]
        while True:
            change = self._change
            for loop in self._loops.values():
                if self._aim(loop.local):
                    loop.wake()
            if all(k.local.child is None and k.local.swept for k in self._loops.values()):
                break
            await change.wait()
        log.info("drained")
        return sorted(local.name for local in running if local.killed is KillCause.GRACE)

    def report(self, local: Local) -> None:
        """Reports a workload's status if it has changed, and forgets the workload if it is over."""
        if local.name not in self._loops:
            return
        local.observe_time = datetime.now(UTC)
        local.log_problems = self.shipping.problems(local.name)
        self._reporter.put(local.name, local.status(draining=self._draining))
        change, self._change = self._change, asyncio.Event()
        change.set()
        if self._is_over(local):
            self._forget(local.name)

    async def finish_log(self, local: Local) -> None:
        """Delivers the rest of the log of a workload before it is removed."""
        others = [w for name, w in self._assignments.workloads.items() if name != local.name]
        await self.shipping.finish(local.name, others)

    def _log_problem(self, name: str) -> None:
        """Reports that a log cannot be delivered, or can be again."""
        if name in self._loops:
            self.report(self._loops[name].local)

    def _used_plugins(self) -> set[str]:
        """Returns digests of the plugins of all workloads here, of their present plans and of their last
        preparation."""
        sha256s = {file.sha256 for w in self._assignments.workloads.values() for file in files_of(w)}
        for loop in self._loops.values():
            sha256s |= prepared_plugins(loop.local.folder)
        return sha256s

    def leave_for(self, local: Local) -> None:
        """Removes a dead worker from its group, beside the other steps after its end."""
        if self._siblings is not None:
            with contextlib.suppress(RuntimeError):  # the agent ends: the next agent does it
                self._siblings.start(self.launcher.leave_for(local), name=f"farewell of {local.name}")

    def _local(self, name: str) -> Local:
        return Local(name, self.home.workload(name), unwell_seconds=self._unwell_seconds)

    def _aim(self, local: Local) -> bool:
        """Sets the goal of a workload; returns whether that is new."""
        before = (local.goal, local.plan)
        workload = self._assignments.workloads.get(local.name)
        if workload is not None:
            if local.plan != (workload.uid, workload.generation):
                # A new plan is tried at once, whatever the result of the one before.
                local.start_at, local.failures = 0.0, 0
            local.workload = workload
            local.goal = GOALS.get(workload.goal, StepGoal.UNTOUCHED)
        else:
            local.goal = StepGoal.STOPPED if self._confirmed else StepGoal.UNTOUCHED
        if self._draining and local.goal in (StepGoal.RUNNING, StepGoal.UNTOUCHED, StepGoal.STOPPED):
            now = drained_kinds(k.local.kind for k in self._loops.values() if k.local.child is not None)
            local.goal = StepGoal.STOPPED if local.child is None or local.kind in now else StepGoal.UNTOUCHED
        return before != (local.goal, local.plan)

    def _is_over(self, local: Local) -> bool:
        is_assigned = local.name in self._assignments.workloads
        return self._confirmed and not is_assigned and local.child is None and local.swept

    def _forget(self, name: str) -> None:
        loop = self._loops.pop(name)
        self._reporter.forget(name)
        self.turns.give_back(name)
        loop.end()
        log.info("forgotten", workload=name, folder=str(loop.local.folder))

    async def _measure_memory(self) -> None:
        """Reports the memory use of all workloads, for people."""
        while True:
            begun = time.monotonic()
            running = [k.local for k in self._loops.values() if k.local.child is not None]
            pids = {local.name: local.child.pid for local in running if local.child is not None}
            sizes = await asyncio.to_thread(tree_bytes, list(pids.values()))
            for local in running:
                if local.child is not None and local.child.pid == pids[local.name]:
                    local.memory_bytes = sizes.get(local.child.pid, 0)
                    self.report(local)
            await asyncio.sleep(max(SAMPLE_SECONDS, (time.monotonic() - begun) / SAMPLE_SHARE))

    async def limit_tenants(self) -> None:
        """Limits the tenants to what their workers may use together."""
        await self.launcher.limit_tenants([loop.local for loop in self._loops.values()])

    async def _watch_memory(self) -> None:
        """Keeps tenants to their limits, and has workloads killed that use more memory than theirs, where only the
        agent enforces it."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await self.limit_tenants()
            watched = {k.local.child.pid: k for k in self._loops.values() if k.local.child and watched_limit(k.local)}
            limits = {pid: watched_limit(k.local) for pid, k in watched.items()}
            for pid, used in (await asyncio.to_thread(over, limits) if limits else {}).items():
                local = watched[pid].local
                if local.child is not None and local.child.pid == pid and not local.over_memory:
                    local.over_memory = over_limit(used, limits[pid])
                    watched[pid].wake()


def watched_limit(local: Local) -> int:
    """Returns the memory limit in bytes that the agent itself enforces on the workload's process; 0 where it does
    not."""
    record = local.record
    return record.memory_limit if record is not None and record.limited_by == WATCHDOG else 0
