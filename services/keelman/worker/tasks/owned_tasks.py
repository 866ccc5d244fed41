"""Starts, follows, restarts and ends the tasks that this worker runs, each with its coroutine."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as wire
from keelman.connect.watches import Watch
from keelman.model.errors import KeelmanError
from keelman.model.work import Work
from keelman.rpc.times import from_duration
from keelman.runtime.logs.logging import bind, get_logger
from keelman.runtime.supervise import Siblings
from keelman.runtime.ticks import tick
from keelman.worker.connector_facts import is_sink, is_source
from keelman.worker.offsets.sink_groups import SinkGroups
from keelman.worker.parking.parking import Parkable, Parking
from keelman.worker.parking.watcher import Watcher
from keelman.worker.restart_policy import policy_of
from keelman.worker.storage import config_records
from keelman.worker.storage import status_state as states
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks.copy_task import CopyTask
from keelman.worker.tasks.effective_config import effective_config
from keelman.worker.tasks.grants import Grants, TaskConfig
from keelman.worker.tasks.heap import Heap
from keelman.worker.tasks.limits import limits_of
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.measured import Measured
from keelman.worker.tasks.meters import Meters
from keelman.worker.tasks.own_statuses import OwnStatuses
from keelman.worker.tasks.start_queue import StartQueue
from keelman.worker.tasks.task_host import TaskHost
from keelman.worker.tasks.watermark import stall_seconds

log = get_logger()
JUDGE_SECONDS = 1.0
OnTopics = Callable[[Work, orders.RunUpdate], None]


@dataclass(slots=True)
class _Running:
    """A running task, with the settings that it follows."""

    task: CopyTask
    host: _Host
    life: asyncio.Task[None]
    adjusted_to: Mapping[str, str] | None = None
    limits: wire.Limits | None = None
    stall_seconds: float = 0.0

    @property
    def config(self) -> TaskConfig:
        """The task's configuration at its start, or one with the same effect."""
        return self.host.config


class _CopyRun(NamedTuple):
    """A copy run's task, and the offset to which the config topic was read when its ticket was granted."""

    task: CopyTask
    config_offset: int


class OwnedTasks:
    """Steered by OwnedWork. `has` tells whether a work is this worker's."""

    def __init__(
        self,
        store: WorkerStore,
        link: SparkLink,
        grants: Grants,
        statuses: OwnStatuses,
        meters: Meters,
        *,
        has: Callable[[Work], bool],
        leads: Callable[[], bool],
        on_topics: OnTopics,
        worker: str,
    ) -> None:
        """Calls `on_topics` with each update of a copy run whose connector has not been deleted since."""
        self._store = store
        self._link = link
        self._grants = grants
        self._has = has
        self._statuses = statuses
        self._watcher = Watcher(client_id=f"{worker}-watch")
        self.parking = Parking(self._watcher, self._together)
        self._on_topics = on_topics
        self.measured = Measured(lambda: from_duration(link.usage.cpu_time))
        self.meters = meters
        self.heap = Heap()
        self._start_queue = StartQueue()
        self._groups = SinkGroups(store, leads)
        self._runs: dict[str, _CopyRun] = {}
        self._grace = store.properties.shutdown_ms / 1000
        self._siblings: Siblings | None = None
        self._tasks: dict[Work, _Running] = {}
        self._of: dict[str, set[Work]] = defaultdict(set)  # the same by connector
        self._awake: dict[Work, _Running] = {}  # those that may not be parked

    def begin(self, siblings: Siblings) -> None:
        """Sets the scope in which the tasks' coroutines run."""
        self._siblings = siblings
        self._watcher.begin(siblings)
        siblings.start(self._groups.run(), name="sink groups")
        siblings.start(self._judge(), name="task statuses")

    @property
    def tasks(self) -> Mapping[Work, CopyTask]:
        """The running tasks."""
        return {work: running.task for work, running in self._tasks.items()}

    @property
    def connectors(self) -> Iterable[str]:
        """The connectors of the running tasks."""
        return self._of.keys()

    @property
    def configs(self) -> Mapping[Work, TaskConfig]:
        """The configurations of the running tasks."""
        return {work: running.config for work, running in self._tasks.items()}

    def find(self, work: Work) -> CopyTask | None:
        """Returns the running task."""
        running = self._tasks.get(work)
        return None if running is None else running.task

    def follow(self, work: Work) -> None:
        """Starts, restarts, pauses or resumes the task, as it is configured now. A task that feels no change keeps
        running."""
        task_config = self._grants.configured(work)
        if task_config is None:
            return
        running = self._tasks.get(work)
        if running is not None and running.config != task_config and _alike(running.config, task_config):
            running.host.config = task_config
        if running is not None and (running.life.done() or running.config != task_config):
            running.task.end()
            if not running.life.done():
                return
            running = None
        if running is None:
            running = self._start(work, task_config)
        connector = self._store.config.connectors[work.connector]
        if connector is not running.adjusted_to:
            self._adjust(work, running, connector)
        if self._store.config.target(work.connector) == config_records.STARTED:
            running.task.resume()
        else:
            running.task.pause()

    def prune(self, connectors: Iterable[str]) -> None:
        """Ends the tasks of these connectors that are no longer this worker's, and forgets those that have ended."""
        for work in [work for name in connectors for work in self._of.get(name, ()) if not self._has(work)]:
            running = self._tasks[work]
            running.task.end()
            if running.life.done():
                self._forget(work)

    def _forget(self, work: Work) -> None:
        if self._tasks.pop(work, None) is not None:
            self.heap.ended(len(self._tasks))
            mine = self._of[work.connector]
            mine.discard(work)
            if not mine:
                del self._of[work.connector]

    async def ended(self, connector: str) -> None:
        """Returns once no task of the connector runs."""
        while lives := [
            self._tasks[work].life for work in self._of.get(connector, ()) if not self._tasks[work].life.done()
        ]:
            await asyncio.wait(lives)

    async def stop(self, works: Iterable[Work], *, cut: bool = False) -> None:
        """Ends these tasks side by side and waits for all."""
        ending = [(work, self._tasks[work]) for work in works if work in self._tasks]
        for _, running in ending:
            running.task.end(cut=cut)
        if not ending:
            return
        begun = time.monotonic()
        await asyncio.wait([running.life for _, running in ending])  # an error ends the siblings, not this caller
        for work, _ in ending:
            self._forget(work)
        log.info("tasks_ended", tasks=len(ending), cut=cut, seconds=round(time.monotonic() - begun, 3))

    async def give_up(self, work: Work, config: TaskConfig) -> None:
        """Gives up a sink's task, which does not come back on any worker."""
        if is_sink(config[0]):
            await self._groups.give_up(work.connector, config[0], [work.task])

    def _adjust(self, work: Work, running: _Running, connector: Mapping[str, str]) -> None:
        """Applies settings that need no restart. Illegal values change nothing: no ticket is granted with them."""
        config, worker = self._store.config, self._store.properties.raw
        running.adjusted_to = connector
        try:
            limits = limits_of(connector, len(config.tasks[work.connector]))
            running.task.follow_policy(policy_of(connector, worker))
            running.stall_seconds = stall_seconds(connector, worker)
        except KeelmanError as error:
            log.warning("connector_keys_illegal", connector=work.connector, error=error.message)
            return
        if limits != running.limits:
            if running.limits is not None:
                running.task.limit(limits)
            running.limits = limits

    def _start(self, work: Work, task_config: TaskConfig) -> _Running:
        assert self._siblings is not None
        # A task that ran on here with another configuration begins with the whole budget, and has to prove itself anew.
        attempts = 0 if work in self._tasks else self._store.statuses.attempts(work)
        settled = work not in self._tasks and self._store.statuses.settled(work)
        host = _Host(self, self._grants, work, task_config, settled=settled)
        task = CopyTask(
            work,
            self._link,
            host,
            partial(self._statuses.report, work),
            grace_seconds=self._grace,
            attempts=attempts,
            start_queue=self._start_queue,
        )
        if self._store.config.target(work.connector) != config_records.STARTED:
            task.pause()
        life = self._siblings.start(self._live(task), name=f"task {work.connector}-{work.task}")
        running = self._tasks[work] = self._awake[work] = _Running(task, host, life)
        self._of[work.connector].add(work)
        return running

    def _together(self, work: Work) -> Mapping[Work, Parkable] | None:
        """Returns the tasks that can park only together with this one; None when one of them is not here or has to
        end."""
        config = self._store.config.connectors.get(work.connector)  # None: deleted, which `follow` has yet to notice
        if config is None or self._store.config.target(work.connector) != config_records.STARTED or not self._has(work):
            return None
        alone = is_source(config)
        count = len(self._store.config.tasks.get(work.connector, ()))
        works = [work] if alone else [Work(work.connector, n) for n in range(count)]
        tasks = {
            task_work: self._tasks[task_work].task
            for task_work in works
            if task_work in self._tasks and self._has(task_work)
        }
        if len(tasks) < len(works) or any(task.ending for task in tasks.values()):
            return None
        return tasks

    async def _live(self, task: CopyTask) -> None:
        bind(connector=task.work.connector, task=task.work.task)
        try:
            await task.run()
            running = self._tasks.get(task.work)
            if running is not None and self._store.config.task(task.work) is None:
                await self.give_up(task.work, running.config)
        finally:
            self._store.changed_about(task.work.connector)

    async def _judge(self) -> None:
        """Keeps the tasks' statuses in line with their state."""
        while True:
            await tick(JUDGE_SECONDS)
            self.heap.look(len(self._tasks))
            for work, running in list(self._awake.items()):
                running.task.judge(time.monotonic(), running.stall_seconds)
                if running.task.parked or self._tasks.get(work) is not running:
                    del self._awake[work]

    def add_run(self, work: Work, uid: str, ticket: wire.StartTicket) -> None:
        """Registers the copy run of a granted ticket: its reports go to the task from now on."""
        self._runs[uid] = _CopyRun(self._tasks[work].task, ticket.config_offset)

    def remove_run(self, uid: str) -> None:
        """Forgets a copy run of which no more reports come."""
        self._runs.pop(uid, None)
        self.measured.ended(uid)

    def unpark(self, work: Work) -> None:
        """Marks the task as no longer parked."""
        self.parking.left(work)
        if work in self._tasks:
            self._awake[work] = self._tasks[work]

    def update(self, update: orders.RunUpdate) -> None:
        """Takes a report of the Spark service about a copy run."""
        run = self._runs.get(update.run_uid)
        if run is not None:
            task = run.task
            self.measured.note(task.work, update)
            self.meters.note(task.work, update)
            if not self._store.config.deleted.since(task.work.connector, run.config_offset):
                self._on_topics(task.work, update)  # else its connector is deleted: the name may be another's by now
            if update.HasField("progress"):
                self._store.committed(task.work.connector, update.progress.offsets)
            task.update(update)

    def reconcile(self, uids: frozenset[str]) -> None:
        """Compares with the Spark service's copy runs: starts lost ones again, and cuts those that this worker does not
        know."""
        for uid in uids - self._runs.keys():
            self._link.send(orders.RunOrder(run_uid=uid, cut=orders.Cut(reason="WITHDRAWN")))
        for uid, run in list(self._runs.items()):
            if uid in uids:
                run.task.linked(uid)
            else:
                run.task.lost(uid)


class _Host(TaskHost):
    """One task's access to its worker, while the task runs. `config` is the task's configuration at its start, or one
    with the same effect."""

    def __init__(self, owned: OwnedTasks, grants: Grants, work: Work, config: TaskConfig, *, settled: bool) -> None:
        """A `settled` task may rest instead of waiting for its turn."""
        self._owned = owned
        self._grants = grants
        self._work = work
        self._settled = settled
        self.config = config

    def ticket(self, uid: str) -> wire.StartTicket | None:
        granted = self._grants.ticket(self._work, self.config, uid)
        if granted is not None:
            self._owned.add_run(self._work, uid, granted)
        return granted

    async def confirm(self, part: bool) -> Sequence[tuple[bytes, bytes]] | None:
        return await self._grants.confirm(self._work, self.config, part=part)

    async def fence(self) -> None:
        await self._grants.fence(self._work, self.config)

    async def fence_parts(self, parts: int) -> bool:
        return await self._grants.fence_parts(self._work, self.config, parts)

    def kind(self) -> str:
        return self._grants.kind(self.config)

    def resting(self) -> Watch | None:
        return self._grants.resting(self._work, self.config) if self._settled else None

    def on_idle(self) -> None:
        self._owned.parking.idle(self._work)

    def on_unpark(self) -> None:
        self._owned.unpark(self._work)

    def on_failure(self, update: orders.RunUpdate) -> None:
        self._owned.meters.note(self._work, update)

    def on_end(self, uid: str) -> None:
        self._owned.remove_run(uid)


def _alike(task_config: TaskConfig, other: TaskConfig) -> bool:
    """Returns whether two configurations have the same effect on a task."""
    return task_config[2:] == other[2:] and effective_config(*task_config[:2]) == effective_config(*other[:2])


def is_failed(status: states.Status | None) -> bool:
    """Returns whether a status is FAILED."""
    return status is not None and status.state == states.FAILED
