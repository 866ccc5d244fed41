"""The connectors and tasks that the group gave this worker: started, stopped and restarted as the config topic says."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as wire
from keelman.connect.errors import ConnectError
from keelman.connect.plugin import load_connector
from keelman.kafka.layout import Work
from keelman.model.errors import KeelmanError
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import Siblings, supervise
from keelman.worker import config_state
from keelman.worker import status_state as states
from keelman.worker.config_state import RestartRequest
from keelman.worker.copy_task import CopyTask
from keelman.worker.duties import TaskDuties
from keelman.worker.grants import Grants, TaskConfig
from keelman.worker.inquiry import trace_of
from keelman.worker.limits import limits_of
from keelman.worker.link import SparkLink
from keelman.worker.membership import Membership
from keelman.worker.owned_connectors import OwnedConnectors
from keelman.worker.parking import Parkable, Parking
from keelman.worker.sink_groups import SinkGroups
from keelman.worker.status_state import Status
from keelman.worker.store import Store
from keelman.worker.tickets import is_sink, is_source
from keelman.worker.watcher import Watcher

log = get_logger()


@dataclass(slots=True)
class _Running:
    """A task at work, with the configuration and the limits it was started with."""

    task: CopyTask
    config: TaskConfig
    limits: wire.Limits | None
    life: asyncio.Task[None]


class OwnedWork:
    """Told of assignments by the herder; `follow()` brings what runs in line with what is configured."""

    def __init__(
        self, store: Store, membership: Membership, link: SparkLink, *, worker_cluster: str, worker: str
    ) -> None:
        self._store = store
        self._membership = membership
        self._link = link
        self._worker = worker
        self._grants = Grants(
            store, membership, lambda work: work in self.works, worker_cluster=worker_cluster, worker=worker
        )
        self._watcher = Watcher(client_id=f"{worker}-watch")
        self.parking = Parking(self._watcher, self._together)
        self._groups = SinkGroups(store, self.parking)
        self._runs: dict[str, CopyTask] = {}
        self._grace = store.properties.shutdown_ms / 1000
        self._siblings: Siblings | None = None
        self._tasks: dict[Work, _Running] = {}
        self._connectors = OwnedConnectors(self.tell)
        self.works: frozenset[Work] = frozenset()
        link.updated = self._updated
        link.standing = self._standing

    def begin(self, siblings: Siblings) -> None:
        """Where the tasks' coroutines run."""
        self._siblings = siblings
        self._watcher.begin(siblings)
        siblings.start(self._groups.run(), name="sink groups")

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

    async def end_all(self, *, last: bool) -> None:
        """This worker ends: everything drains. With the `last` worker sinks give up their places in their groups."""
        gone = self.works
        self.works = frozenset()
        running = list(self._tasks.values())
        await self._stop(list(self._tasks))
        self._say_unassigned(gone)
        self._connectors.clear()
        if last:
            await supervise(*(partial(self._give_up, one.task.work, one.config) for one in running))

    async def _give_up(self, work: Work, config: TaskConfig) -> None:
        if is_sink(config[0]):
            await self._groups.give_up(work.connector, config[0], [work.task])

    def follow(self) -> None:
        """Starts, stops, pauses and restarts what differs from the configuration. Does not wait for any of it."""
        self.prune()
        restarts, self._store.config.restarts = self._store.config.restarts, []
        for work in sorted(self.works):
            if work.is_task:
                self._follow_task(work)
            else:
                self._connectors.follow(work, self._store.config)
        for work, running in list(self._tasks.items()):
            running.task.look()
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
            elif self._failed(work) or not request.only_failed:
                self._connectors.forget(work)
                self._connectors.follow(work, self._store.config)

    def _failed(self, work: Work) -> bool:
        """By the status topic: it may be the leader that found the connector at fault."""
        now = self._store.statuses.statuses.get(work)
        return now is not None and now.state == states.FAILED

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

    def _follow_task(self, work: Work) -> None:
        wanted = self._grants.configured(work)
        if wanted is None:
            return
        running = self._tasks.get(work)
        if running is not None and (running.life.done() or running.config != wanted):
            running.task.end()
            if not running.life.done():
                return
            running = None
        if running is None:
            running = self._start(work, wanted)
        limits = self._limits(work)
        if limits is not None and limits != running.limits:
            running.limits = limits
            running.task.limit(limits)
        if self._store.config.target(work.connector) == config_state.STARTED:
            running.task.resume()
        else:
            running.task.pause()

    def _limits(self, work: Work) -> wire.Limits | None:
        """The task's limits; None for illegal ones, with which no ticket is granted and what runs goes on as it is."""
        config = self._store.config
        try:
            return limits_of(config.connectors[work.connector], len(config.tasks[work.connector]))
        except KeelmanError:
            return None

    def _start(self, work: Work, wanted: TaskConfig) -> _Running:
        assert self._siblings is not None
        grants = self._grants

        def ticket(uid: str) -> wire.StartTicket | None:
            granted = grants.ticket(work, wanted, uid)
            if granted is not None:
                self._runs[uid] = task
            return granted

        duties = TaskDuties(
            ticket=ticket,
            confirm=lambda part: grants.confirm(work, wanted, part=part),
            tell=lambda state, trace: self.tell(work, state, trace),
            fence=lambda: grants.fence(work, wanted),
            fence_parts=lambda parts: grants.fence_parts(work, wanted, parts),
            idle=lambda: self.parking.idle(work),
            left=lambda: self.parking.left(work),
            ended=lambda uid: self._runs.pop(uid, None),
        )
        task = CopyTask(work, self._link, duties, grace_seconds=self._grace)
        if self._store.config.target(work.connector) != config_state.STARTED:
            task.pause()
        life = self._siblings.start(self._live(task, wanted), name=f"task {work.connector}-{work.task}")
        made = _Running(task, wanted, self._limits(work), life)
        self._tasks[work] = made
        return made

    def _together(self, work: Work) -> Mapping[Work, Parkable] | None:
        """The tasks that can park only together with this one; None when one of them is not here or is to end."""
        if self._store.config.target(work.connector) != config_state.STARTED or work not in self.works:
            return None
        alone = is_source(self._store.config.connectors[work.connector])
        count = len(self._store.config.tasks.get(work.connector, ()))
        wanted = [work] if alone else [Work(work.connector, n) for n in range(count)]
        found = {one: self._tasks[one].task for one in wanted if one in self._tasks and one in self.works}
        if len(found) < len(wanted) or any(task.ending for task in found.values()):
            return None
        return found

    async def _live(self, task: CopyTask, config: TaskConfig) -> None:
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
            if self._store.config.task(task.work) is None:
                await self._give_up(task.work, config)
        finally:
            self._store.changed()

    async def _stop(self, works: Iterable[Work], *, cut: bool = False) -> None:
        """Ends these tasks side by side and waits for all."""
        ending = [(work, self._tasks[work]) for work in works if work in self._tasks]
        for work in works:
            self._connectors.forget(work)
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
        task = self._runs.get(update.run_uid)
        if task is not None:
            task.update(update)

    def _standing(self, uids: frozenset[str]) -> None:
        """The link's other side has these copy runs: what it has lost begins anew, what nobody here knows is cut."""
        for uid in uids - self._runs.keys():
            self._link.send(orders.RunOrder(run_uid=uid, cut=orders.Cut(reason="WITHDRAWN")))
        for uid, task in list(self._runs.items()):
            if uid in uids:
                task.linked(uid)
            else:
                task.lost(uid)
        for running in self._tasks.values():
            running.task.look()
