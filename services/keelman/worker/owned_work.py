"""The connectors and tasks that the group gave this worker: started, stopped and restarted as the config topic says."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import load_connector
from keelman.kafka.layout import Work
from keelman.model.errors import KeelmanError
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.worker import config_state, tickets
from keelman.worker import status_state as states
from keelman.worker.config_state import RestartRequest
from keelman.worker.copy_task import CopyTask, TaskDuties
from keelman.worker.leader import tasks_of
from keelman.worker.link import SparkLink
from keelman.worker.membership import Membership
from keelman.worker.status_state import Status
from keelman.worker.store import Store

log = get_logger()
TARGET_STATES = {
    config_state.STARTED: states.RUNNING,
    config_state.PAUSED: states.PAUSED,
    config_state.STOPPED: states.STOPPED,
}


@dataclass(slots=True)
class _Running:
    """A task at work, with the configuration it was started with."""

    task: CopyTask
    config: tuple[Mapping[str, str], Mapping[str, str]]
    life: asyncio.Task[None]


class OwnedWork:
    """Told of assignments by the herder; `follow()` brings what runs in line with what is configured."""

    def __init__(
        self, store: Store, membership: Membership, link: SparkLink, *, worker_cluster: str, worker: str
    ) -> None:
        self._store = store
        self._membership = membership
        self._link = link
        self._cluster = worker_cluster
        self._worker = worker
        self._grace = store.properties.shutdown_ms / 1000
        self._siblings: Siblings | None = None
        self._tasks: dict[Work, _Running] = {}
        self._connectors: dict[Work, tuple[Mapping[str, str], str]] = {}
        self.works: frozenset[Work] = frozenset()
        link.updated = self._updated
        link.standing = self._standing

    def begin(self, siblings: Siblings) -> None:
        """Where the tasks' coroutines run."""
        self._siblings = siblings

    @property
    def tasks(self) -> Mapping[Work, CopyTask]:
        """The tasks at work."""
        return {work: running.task for work, running in self._tasks.items()}

    async def take(self, assigned: Iterable[Work], revoked: Iterable[Work]) -> None:
        """Takes an assignment: what is revoked has stopped when this returns; `follow()` starts what is new."""
        gone = self.works & frozenset(revoked)
        self.works = (self.works - gone) | frozenset(assigned)
        await self._stop(gone)
        self._say_unassigned(gone)

    def prune(self) -> None:
        """Forgets work that is configured no more; its runs drain."""
        self.works &= self._store.config.work()

    async def drop_all(self) -> None:
        """The group has lost this worker: whatever runs is cut at once."""
        self.works = frozenset()
        await self._stop(list(self._tasks), cut=True)
        self._connectors.clear()

    async def end_all(self) -> None:
        """This worker ends: everything drains."""
        gone = self.works
        self.works = frozenset()
        await self._stop(list(self._tasks))
        self._say_unassigned(gone)
        self._connectors.clear()

    def follow(self) -> None:
        """Starts, stops, pauses and restarts what differs from the configuration. Does not wait for any of it."""
        self.prune()
        restarts, self._store.config.restarts = self._store.config.restarts, []
        for work in sorted(self.works):
            if work.is_task:
                self._follow_task(work)
            else:
                self._follow_connector(work)
        for work, running in list(self._tasks.items()):
            if work not in self.works:
                running.task.end()
                if running.life.done():
                    del self._tasks[work]
        for request in restarts:
            self.restart(request)

    def restart(self, request: RestartRequest) -> None:
        """Restarts what this worker has of a connector."""
        for work in sorted(w for w in self.works if w.connector == request.connector):
            if work.is_task:
                running = self._tasks.get(work)
                if request.include_tasks and running and (running.task.failed or not request.only_failed):
                    self.restart_task(work)
            elif self._connectors.get(work, ({}, ""))[1] == states.FAILED or not request.only_failed:
                self._connectors.pop(work, None)
                self._follow_connector(work)

    def restart_task(self, work: Work) -> bool:
        """Ends the task's run and begins a new one; False when this worker does not have it."""
        running = self._tasks.get(work)
        if running is None:
            return False
        self.tell(work, states.RESTARTING, None)
        running.task.restart()
        return True

    def tell(self, work: Work, state: str, trace: str | None) -> None:
        """Has a status of this worker written soon."""
        self._store.tell(work, Status(state, self._worker, self._membership.generation, trace, self._version(work)))

    def _version(self, work: Work) -> str | None:
        try:
            return load_connector(self._store.config.connectors[work.connector]["connector.class"]).version
        except (KeelmanError, KeyError):
            return None

    def _follow_connector(self, work: Work) -> None:
        config = self._store.config.connectors[work.connector]
        known = self._connectors.get(work)
        target = TARGET_STATES[self._store.config.target(work.connector)]
        if known is not None and known[0] == config and known[1] in (target, states.FAILED):
            return
        trace = None
        if known is None or known[0] != config:
            trace = connector_problem(config)
        state = states.FAILED if trace else target
        self._connectors[work] = (config, state)
        log.info("connector", connector=work.connector, state=state)
        self.tell(work, state, trace)

    def _follow_task(self, work: Work) -> None:
        config = self._store.config
        task_config = config.task(work)
        if task_config is None:
            return
        wanted = (config.connectors[work.connector], task_config)
        running = self._tasks.get(work)
        if running is not None and (running.life.done() or running.config != wanted):
            running.task.end()
            if not running.life.done():
                return
            running = None
        if running is None:
            running = self._start(work, wanted)
        if config.target(work.connector) == config_state.STARTED:
            running.task.resume()
        else:
            running.task.pause()

    def _start(self, work: Work, wanted: tuple[Mapping[str, str], Mapping[str, str]]) -> _Running:
        assert self._siblings is not None
        duties = TaskDuties(
            ticket=lambda uid: self._ticket(work, wanted, uid),
            confirm=lambda: self._confirm(work, wanted),
            tell=lambda state, trace: self.tell(work, state, trace),
        )
        task = CopyTask(work, self._link, duties, grace_seconds=self._grace)
        if self._store.config.target(work.connector) != config_state.STARTED:
            task.pause()
        life = self._siblings.start(self._live(task), name=f"task {work.connector}-{work.task}")
        made = _Running(task, wanted, life)
        self._tasks[work] = made
        return made

    async def _live(self, task: CopyTask) -> None:
        try:
            while not task.ending:
                try:
                    await task.run()
                except (KeelmanError, ConnectError) as error:
                    await task.stay_failed(trace_of(error))
                except Exception:
                    # A fault of ours in one task must not end the worker and all its other tasks.
                    log.exception("task_crashed", connector=task.work.connector, task=task.work.task)
                    await task.stay_failed(traceback.format_exc())
        finally:
            self._store.changed()

    def _holds(self, work: Work, wanted: tuple[Mapping[str, str], Mapping[str, str]]) -> bool:
        config = self._store.config
        now = (config.connectors.get(work.connector), config.task(work))
        if work not in self.works or not self._membership.healthy or now != wanted:
            return False
        # A task of the former set may still commit what a task of the new one would read again.
        unfenced = work.connector in config.unfenced
        return not (unfenced and tickets.is_exactly_once_source(self._store.properties, wanted[0]))

    def _ticket(
        self, work: Work, wanted: tuple[Mapping[str, str], Mapping[str, str]], uid: str
    ) -> tickets.StartTicket | None:
        if not self._holds(work, wanted):
            return None
        return tickets.grant(
            self._store.properties,
            uid=uid,
            worker_cluster=self._cluster,
            worker=self._worker,
            work=work,
            generation=self._membership.generation,
            config_offset=self._store.config.offset,
            connector_config=wanted[0],
            task_config=wanted[1],
        )

    async def _confirm(
        self, work: Work, wanted: tuple[Mapping[str, str], Mapping[str, str]]
    ) -> Sequence[tuple[bytes, bytes]] | None:
        await self._store.read_config()
        if not self._holds(work, wanted):
            return None
        offsets: Sequence[tuple[bytes, bytes]] = ()
        if tickets.is_source(wanted[0]):
            offsets = await self._store.committed_offsets(work.connector)
        return offsets if self._holds(work, wanted) else None

    async def _stop(self, works: Iterable[Work], *, cut: bool = False) -> None:
        """Ends these tasks side by side and waits for all."""
        ending = [(work, self._tasks[work]) for work in works if work in self._tasks]
        for work in works:
            self._connectors.pop(work, None)
        for _, running in ending:
            running.task.end(cut=cut)
        begun = time.monotonic()
        for work, running in ending:
            await running.life
            self._tasks.pop(work, None)
        if ending:
            log.info("tasks_ended", tasks=len(ending), cut=cut, seconds=round(time.monotonic() - begun, 3))

    def _say_unassigned(self, works: Iterable[Work]) -> None:
        for work in works:
            self.tell(work, states.UNASSIGNED, None)

    def _updated(self, update: orders.RunUpdate) -> None:
        for running in self._tasks.values():
            if running.task.uid == update.run_uid:
                running.task.update(update)
                return

    def _standing(self, uids: frozenset[str]) -> None:
        for running in self._tasks.values():
            if running.task.uid and running.task.uid not in uids:
                running.task.lost()


def connector_problem(config: Mapping[str, str]) -> str | None:
    """Why this connector cannot run, as a trace; None when it can."""
    try:
        tasks_of(load_connector(config.get("connector.class", "")), config)
    except (KeelmanError, ConnectError, ValueError) as error:
        return trace_of(error)
    return None


def trace_of(error: Exception) -> str:
    """A trace in the shape that Connect's users know."""
    name = getattr(error, "java_name", ConnectError.java_name)
    return f"{name}: {getattr(error, 'message', str(error))}\n"
