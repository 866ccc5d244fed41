"""Starts, stops and restarts the connectors and tasks that the group gave this worker, by the config topic."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from keelman.connect.errors import ConnectError
from keelman.model.work import CONNECTOR_TASK, Work
from keelman.runtime.supervise import supervise
from keelman.worker.restart_policy import stamp
from keelman.worker.storage import status_state as states
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_records import RestartRequest
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks.grants import Grants
from keelman.worker.tasks.group_member import GroupMember
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.meters import Meters
from keelman.worker.tasks.own_statuses import OwnStatuses
from keelman.worker.tasks.owned_connectors import OwnedConnectors
from keelman.worker.tasks.owned_tasks import OnTopics, OwnedTasks, is_failed


class OwnedWork:
    """The herder notifies it of assignments; `follow()` brings the running work in line with the configuration."""

    def __init__(
        self,
        store: WorkerStore,
        membership: GroupMember,
        link: SparkLink,
        *,
        on_topics: OnTopics,
        worker_cluster: str,
        worker: str,
    ) -> None:
        """Calls `on_topics` with the updates of copy runs, which name the topics they use."""
        self._store = store
        self._worker = worker

        def has(work: Work) -> bool:
            return work in self.works

        def leads() -> bool:
            return membership.leads

        grants = Grants(store, membership, has, worker_cluster=worker_cluster, worker=worker)
        meters = Meters()
        self._statuses = OwnStatuses(store, membership, meters, worker)
        self.tasks = OwnedTasks(
            store,
            link,
            grants,
            self._statuses,
            meters,
            has=has,
            leads=leads,
            on_topics=on_topics,
            worker=worker,
        )
        self._connectors = OwnedConnectors(self._statuses.report)
        self.works: frozenset[Work] = frozenset()
        self._changes = ChangeSet(lambda: {*store.config.connectors, *self.tasks.connectors})
        store.change_sets.append(self._changes)
        self._pruned = (-1, self.works)

    async def take(self, assigned: Iterable[Work], revoked: Iterable[Work]) -> None:
        """Takes an assignment: revoked work has stopped when this returns; `follow()` starts new work."""
        gone = self.works & frozenset(revoked)
        new = frozenset(assigned)
        self.works = (self.works - gone) | new
        self._changes.add(work.connector for work in gone | new)
        await self._stop(gone)
        self._say_unassigned(gone)

    def prune(self) -> None:
        """Forgets work that is no longer configured; its runs drain."""
        stamp = (self._store.config.shape, self.works)
        if self._pruned[0] == stamp[0] and self._pruned[1] is stamp[1]:
            return
        works = self.works & self._store.config.work()
        if len(works) < len(self.works):  # the same object while nothing has changed
            for work in self.works - works:  # work that is made again has a status to report
                self._connectors.forget(work)
            self.works = works
        self._pruned = (stamp[0], self.works)

    def lose(self, reason: str) -> None:
        """Shows none of this worker's work as running from now on: the place in the group is lost."""
        when = stamp(datetime.now(UTC))
        why_lost = f"its worker lost its place in the group at {when}, and copies nothing of this since then: {reason}"
        self._store.statuses.lose(self.works, self._worker, f"{ConnectError.java_name}: {why_lost}\n")
        self._store.status_topic.writer.forget()

    async def drop_all(self) -> None:
        """Cuts all running work at once: the group has lost this worker."""
        self.works = frozenset()
        await self._stop(list(self.tasks.tasks), cut=True)
        self._connectors.clear()

    async def end_all(self, *, last: bool) -> None:
        """Drains everything: this worker ends. With the `last` worker sinks give up their places in their groups."""
        gone = self.works
        self.works = frozenset()
        configs = self.tasks.configs
        await self._stop(list(configs))
        self._say_unassigned(gone)
        self._connectors.clear()
        if last:
            await supervise(*(partial(self.tasks.give_up, work, config) for work, config in configs.items()))

    def follow(self) -> None:
        """Starts, stops, pauses and restarts work that differs from the configuration, of some connectors at a time.

        Does not wait for any of it.
        """
        self.prune()
        restarts, self._store.config.restarts = self._store.config.restarts, []
        names = self._changes.take()
        for work in self._works_of(names):
            if work.is_task:
                self.tasks.follow(work)
            else:
                self._connectors.follow(work, self._store.config, failed=self._failed(work))
        self._connectors.log()
        self.tasks.prune(names)
        for request in restarts:
            self.restart(request)

    @property
    def busy(self) -> bool:
        """Whether changed connectors are still waiting for their look."""
        return self._changes.more

    def _works_of(self, names: set[str]) -> list[Work]:
        tasks = self._store.config.tasks
        works = (Work(name, n) for name in sorted(names) for n in (CONNECTOR_TASK, *range(len(tasks.get(name, ())))))
        return [work for work in works if work in self.works]

    def restart(self, request: RestartRequest) -> None:
        """Restarts this worker's part of a connector, which itself begins again once its status is RESTARTING."""
        for work in sorted(w for w in self.works if w.connector == request.connector):
            if work.is_task:
                task = self.tasks.find(work)
                if request.include_tasks and task and (task.failed or not request.only_failed):
                    self.restart_task(work)
            elif self._failed(work) or not request.only_failed:
                self._connectors.forget(work)
                self._statuses.report(work, states.RESTARTING, None)

    def _failed(self, work: Work) -> bool:
        """Decides by the status topic: the leader may have found the connector at fault."""
        return is_failed(self._store.statuses.statuses.get(work))

    def restart_task(self, work: Work) -> bool:
        """Ends the task's run and begins a new one; False when this worker does not have it."""
        task = self.tasks.find(work)
        if task is None:
            return False
        self._statuses.report(work, states.RESTARTING, None)
        task.restart()
        return True

    async def _stop(self, works: Iterable[Work], *, cut: bool = False) -> None:
        for work in works:
            self._connectors.forget(work)
        await self.tasks.stop(works, cut=cut)

    def _say_unassigned(self, works: Iterable[Work]) -> None:
        for work in works:
            # The next owner has to see whether it fails again.
            self._statuses.report(work, states.UNASSIGNED, None, {"failed": True} if self._failed(work) else None)
