"""Does the steps of a workload: writes its files, probes its ports, starts, stops, kills, sweeps and removes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from keelman.agent.step import Action, KillCause, StepGoal, WorkloadStep
from keelman.agent.workloads.commands import Command, data_folders, farewell
from keelman.agent.workloads.limits import Limiter, held_record
from keelman.agent.workloads.local import Local
from keelman.agent.workloads.logs import last_line, log_file
from keelman.agent.workloads.process_surroundings import Surroundings
from keelman.agent.workloads.tenant_limits import tenant_limits
from keelman.model.errors import KeelmanError, Unavailable
from keelman.runtime.home import Home, write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.parts import Keeping, Log
from keelman.runtime.processes import children
from keelman.runtime.processes.ports import port_is_free
from keelman.runtime.processes.users import open_for

log = get_logger()
PORT_SECONDS = 2.0
HURRIED = -10
"""Niceness of urgent processes: a dead worker's work is not copied until its farewell is done."""


class Launcher:
    """The hands of the agent."""

    def __init__(
        self,
        home: Home,
        commands: Mapping[str, Command],
        *,
        grace_seconds: float,
        log_keeping: Keeping,
        surroundings: Surroundings,
        limiter: Limiter,
        needed: Callable[[str], int | None] = lambda _: None,
        broker_data: Path | None = None,
    ) -> None:
        """`needed` returns the position from which on a workload's log has yet to be delivered. `broker_data` is the
        parent of brokers' data folders, by default in the home."""
        self._home = home
        self._commands = commands
        self._grace_seconds = grace_seconds
        self._log_keeping = log_keeping
        self._surroundings = surroundings
        self._limiter = limiter
        self._needed = needed
        self._broker_data = home.broker_data if broker_data is None else broker_data

    @property
    def record_owner(self) -> int | None:
        """The user whose records of processes are believed; None for any user's."""
        return self._surroundings.record_owner

    async def limit_tenants(self, workloads: Iterable[Local]) -> None:
        """Limits each tenant with workers here to what these may use together."""
        counted = [x for x in workloads if x.kind == "worker" and (x.goal is StepGoal.RUNNING or x.child is not None)]
        shares = tenant_limits((x.tenant, x.limits) for x in counted if x.tenant)
        if shares:
            await asyncio.to_thread(self._limiter.share, shares)

    def adopt(self, local: Local) -> None:
        """Finds the process of an earlier agent. If it ended meanwhile, its end and its leftovers are handled as if it
        had just ended."""
        adopted = children.adopt(local.folder, owner=self.record_owner)
        if adopted is None:
            return
        local.record, local.child = adopted
        if local.child is not None:
            if local.record.ready:  # as for its own, three checks must fail before it is called unwell
                local.note_health(True, time.monotonic())
            self._limiter.adopt(local.name, local.record)
            log.info("adopted", workload=local.name, pid=local.child.pid, generation=local.record.generation)
        elif local.record.ended:
            local.swept = False
        elif local.record.pid:
            end = children.exit_of(local.folder, local.record.pid, None)
            line = last_line(log_file(local.folder), local.record.log_offset)
            local.over_memory = self._limiter.killed_for_memory(local.record)
            local.note_end(end, line, time.monotonic(), seen=False)
            self._keep_end(local)
            log.warning("ended_while_away", workload=local.name, pid=local.record.pid, exit_code=end.code)

    async def do(self, step: WorkloadStep, local: Local) -> None:
        """Does one step. An error that keeps a workload from starting becomes its status; other errors are raised."""
        match step.action:
            case Action.PREPARE:
                await self._guard(self._prepare, local)
            case Action.START:
                await self._guard(self._start, local)
            case Action.STOP:
                self._stop(local)
            case Action.KILL:
                self._kill(local, step.cause or KillCause.GRACE)
            case Action.SWEEP:
                await self._sweep(local)
            case Action.REMOVE:
                await self._remove(local)
            case Action.NOTHING | Action.WAIT:
                pass

    def note_ready(self, local: Local) -> None:
        """Records that a workload's process has answered its health check, for the agent that may adopt it."""
        if local.healthy_since is not None and local.record is not None and not local.record.ready:
            self._keep(local, replace(local.record, ready=True))

    def note_end(self, local: Local) -> None:
        """Takes the end of a workload's process, which was just noticed."""
        child = local.child
        if child is None or child.exit is None or local.record is None:
            return
        line = last_line(log_file(local.folder), local.record.log_offset)
        if local.killed is None:
            local.over_memory = self._limiter.killed_for_memory(local.record)
        local.note_end(child.exit, line, time.monotonic(), seen=True)
        self._keep_end(local)
        log.info("ended", workload=local.name, pid=child.pid, exit_code=child.exit.code, message=local.message)

    async def leave_for(self, local: Local) -> None:
        """Removes a dead worker from its group. Errors are only logged."""
        command = farewell(local.folder) if local.kind == "worker" else ()
        if not command:
            return
        try:
            surroundings = self._surroundings_of(local)
            with os.fdopen(open_for(surroundings.user, log_file(local.folder)), "ab") as output:
                child = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=surroundings.environment(local.kind, local.folder),
                    umask=surroundings.umask,
                    **surroundings.as_user,
                )
            hurry(child.pid)
            code = await child.wait()
        except (KeelmanError, OSError) as error:
            log.warning("farewell_failed", workload=local.name, error=str(error))
            return
        log.info("farewell_said", workload=local.name, exit_code=code)

    async def keep_log(self, local: Local) -> None:
        """Cuts a workload's log where it is long. A log that cannot be cut, for example on a full disk, stays whole."""
        async with local.log_lock:
            try:
                keeper = await asyncio.to_thread(
                    Log(log_file(local.folder)).keep,
                    self._log_keeping,
                    written=local.child is not None,
                    needed=self._needed(local.name),
                )
            except OSError as error:
                problem = str(error)
                if problem != local.log_problem:
                    log.warning("log_not_cut", workload=local.name, error=problem)
                local.log_problem = problem
                return
        local.log_problem = ""
        if keeper:
            log.info("log_cut", workload=local.name, parts=keeper)

    def _surroundings_of(self, local: Local) -> Surroundings:
        return self._surroundings.of(local.kind, local.tenant)

    def _keep_end(self, local: Local) -> None:
        if local.record is not None:
            self._keep(local, replace(local.record, ended=True))

    def _keep(self, local: Local, record: children.ChildRecord) -> None:
        local.record = record
        with contextlib.suppress(OSError):  # kept or not, this agent knows
            children.write_record(local.folder, record)

    async def _guard(self, step: Callable[[Local], Awaitable[None]], local: Local) -> None:
        try:
            await step(local)
        except KeelmanError as error:
            reason, message = error.reason, error.message
        except OSError as error:
            reason, message = "START_FAILED", f"cannot be started: {error}"
        else:
            return
        local.could_not_start(reason, message, time.monotonic())
        log.warning("could_not_start", workload=local.name, reason=reason, message=message)

    async def _prepare(self, local: Local) -> None:
        workload = local.workload
        kind = str(workload.spec.WhichOneof("kind")) if workload is not None else ""
        if workload is None or kind not in self._commands:
            raise Unavailable(
                f"this agent cannot run workloads of kind {kind!r}: it knows {', '.join(sorted(self._commands))}",
                reason="UNKNOWN_KIND",
            )
        prepared = self._commands[kind](workload, self._home)
        # A workload that ran here before gets its ports back: their present holder is most likely about to end.
        end = time.monotonic() + (PORT_SECONDS if local.record is not None else 0.0)
        for host, port in prepared.ports:
            while not port_is_free(host, port):
                if time.monotonic() < end:
                    await asyncio.sleep(0.05)
                    continue
                raise Unavailable(
                    f"port {port} on {host} is taken by another process: stop that, or place {local.name} on another",
                    reason="PORT_TAKEN",
                    metadata={"host": host, "port": str(port)},
                )
        surroundings = await asyncio.to_thread(self._surroundings_of, local)
        await asyncio.to_thread(surroundings.check_apart)
        await asyncio.to_thread(surroundings.prepare, local.folder, self._home.socket(local.name))
        local.removed = False
        for name, text in prepared.files.items():
            write_file(
                local.folder / name, text.encode(), owner=surroundings.owner
            )  # readable by its owner only: there may be passwords in it
        await asyncio.to_thread(surroundings.make_folders, prepared.folders)
        if prepared.routes is not None:
            await asyncio.to_thread(surroundings.check_routes, local.folder, prepared.routes)
        await self.keep_log(local)
        local.prepared, local.prepared_plan = prepared, (workload.uid, workload.generation)

    async def _start(self, local: Local) -> None:
        if local.prepared is None:
            return
        surroundings = await asyncio.to_thread(self._surroundings_of, local)
        user, tenant = surroundings.popen_user, local.tenant
        held = await asyncio.to_thread(self._limiter.hold, local.name, local.limits, user, tenant)
        command = surroundings.confined(local.prepared.command, local.folder)
        record = held_record(local.new_record(command), held, local.limits)
        environment = surroundings.environment(local.kind, local.folder, local.prepared.files)
        child = children.start(
            local.folder,
            record,
            log=log_file(local.folder),
            environment=environment,
            umask=surroundings.umask,
            user=None if held.drops else user,
            owner=surroundings.user,
            enter=held.enter,
        )
        local.child, local.record, local.killed = child, child.record, None
        limited = {"limited_by": held.by} if held.by else {}
        log.info(
            "started",
            workload=local.name,
            pid=child.pid,
            generation=record.generation,
            restarts=record.restarts,
            **limited,
        )

    def _stop(self, local: Local) -> None:
        if local.child is not None:
            local.kill_at = time.monotonic() + self._grace_seconds
            local.child.terminate()
            log.info("stopping", workload=local.name, pid=local.child.pid)

    def _kill(self, local: Local, cause: KillCause) -> None:
        if local.child is not None:
            # Its end comes within moments; a process that the kernel holds on to is killed again, not in a tight loop.
            local.killed, local.kill_at = cause, time.monotonic() + 1.0
            local.child.kill()
            log.warning("killed", workload=local.name, pid=local.child.pid, cause=cause.value)

    async def _sweep(self, local: Local) -> None:
        if local.record is not None:
            left = await children.sweep(local.folder, local.record, seen=local.end_seen)
            if left:
                log.warning("leftovers_killed", workload=local.name, pids=left)
            await asyncio.to_thread(self._limiter.release, local.name, local.record)
        local.swept = True

    async def _remove(self, local: Local) -> None:
        # By the spec alone: no file in the workload's own folder names them, since the workload could write another.
        if local.workload is not None:
            for folder in data_folders(local.workload, self._broker_data):
                if folder.exists():
                    await asyncio.to_thread(shutil.rmtree, folder)
        if local.folder.exists():
            await asyncio.to_thread(shutil.rmtree, local.folder)
        socket = self._home.socket(local.name)
        socket.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # others have sockets in it
            socket.parent.rmdir()
        local.removed, local.record = True, None
        log.info("removed", workload=local.name)


def hurry(pid: int) -> None:
    """Gives a short process the processor before others, if this one has the right: root has."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, HURRIED)
