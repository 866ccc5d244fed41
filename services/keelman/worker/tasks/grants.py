"""Grants tickets to this worker's tasks, confirms them, and fences their predecessors at Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from keelman.connect.errors import ConnectError
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Direction
from keelman.connect.watches import Watch
from keelman.connectors.registry import find_connector
from keelman.engine.idle import park_after_seconds
from keelman.engine.source.split import part_ids, plans
from keelman.kafka.fencing import fence_all
from keelman.model.errors import KeelmanError, NotFound
from keelman.model.work import Work
from keelman.runtime.coalesced import Coalesced
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import supervise
from keelman.worker import connector_facts
from keelman.worker.asking.java_plugins import NOT_READY
from keelman.worker.config.client_properties import fencing_client
from keelman.worker.offsets.source_offsets import OffsetRow, merged_offsets, offset_topics, own_offsets
from keelman.worker.storage.store import WorkerStore
from keelman.worker.tasks import tickets
from keelman.worker.tasks.effective_config import without_limits
from keelman.worker.tasks.group_member import GroupMember
from keelman.worker.tasks.limits import limits_of

log = get_logger()
FENCE_SECONDS = 5.0
PARTS_SECONDS = 15.0
FENCES_AT_ONCE = 8
TaskConfig = tuple[Mapping[str, str], Mapping[str, str], tuple[int, ...]]
"""The start configuration of a task: the connector's configuration without its limits, its own, and the versions of the
values that their references had then."""


class Grants:
    """Decides by the worker's tables and its place in the group. `has` tells whether a work is this worker's."""

    def __init__(
        self,
        store: WorkerStore,
        membership: GroupMember,
        has: Callable[[Work], bool],
        *,
        worker_cluster: str,
        worker: str,
    ) -> None:
        self._store = store
        self._membership = membership
        self._has = has
        self._cluster = worker_cluster
        self._worker = worker
        # Each has a client of its own, and a lost link loses the copy runs of all tasks at once.
        self._fences = asyncio.Semaphore(FENCES_AT_ONCE)
        # Hundreds of tasks may confirm at the same time; a read that begins after a fence is good for all of them.
        self._read_config = Coalesced(store.config_topic.read)
        self._read_offsets = Coalesced(store.offset_topic.read)

    def configured(self, work: Work) -> TaskConfig | None:
        """Returns the task's present configuration; None when it is no longer configured, and while a value is being
        read."""
        task = self._store.config.task(work)
        if task is None:
            return None
        connector = without_limits(self._store.config.applied[work.connector])
        versions = self._store.secrets.versions(connector, task)
        return None if versions is None else (connector, task, versions)

    def holds(self, work: Work, task_config: TaskConfig) -> bool:
        """Returns whether a copy run of this task with this configuration has a right to exist."""
        if not self._has(work) or not self._membership.healthy or self.configured(work) != task_config:
            return False
        # A task of the former set may still commit data that a task of the new one would read again.
        unfenced = work.connector in self._store.config.unfenced
        return not (unfenced and connector_facts.is_exactly_once_source(self._store.properties, task_config[0]))

    def kind(self, task_config: TaskConfig) -> str:
        """Returns the kind of slots that the task's copy runs may have: the folder of its plugin; empty for our own
        connectors, and while the plugin has not answered yet."""
        return tickets.plugin_folder(task_config[0])

    def ticket(self, work: Work, task_config: TaskConfig, uid: str) -> tickets.StartTicket | None:
        """Returns a start ticket; None while none may be granted.

        Raises PolicyRefused, NotFound, InvalidArgument, ConfigProviderError, and the plugin's own errors.
        """
        if not self.holds(work, task_config):
            return None
        config, secrets = self._store.config, self._store.secrets
        connector, task = secrets.resolved(task_config[0]), secrets.resolved(task_config[1])
        if connector is None or task is None:
            return None
        self._store.judge.require({**connector, **task})
        try:
            return tickets.grant(
                self._store.properties,
                uid=uid,
                worker_cluster=self._cluster,
                worker=self._worker,
                work=work,
                generation=self._membership.generation,
                config_offset=config.offset,
                connector_config=connector,
                task_config=task,
                hidden=secrets.hidden(task_config[0], task_config[1]),
                limits=limits_of(config.connectors[work.connector], len(config.tasks[work.connector])),
            )
        except NotFound as error:
            if error.reason != NOT_READY:
                raise
            return None  # its plugin has not answered yet

    def resting(self, work: Work, task_config: TaskConfig) -> Watch | None:
        """Returns the watch of a task that has run before, if its source is unchanged since its offsets; None where
        only a copy run can find that out, or has to report an error.

        The offsets are those that this worker has read so far. If newer ones exist, a copy run begins in vain.
        """
        config, properties = {**task_config[0], **task_config[1]}, self._store.properties
        try:
            kind = find_connector(config.get("connector.class", ""), config.get("connector.plugin.version"))
            if kind.direction is not Direction.SOURCE or offset_topics(properties, config)[1]:
                return None
            rows, resolved = self._store.offsets.of(work.connector), self._store.secrets.resolved(config)
            split = plans(work.connector, rows).get(work.task or 0, 0)
            if resolved is None or not rows or split or park_after_seconds(properties.raw, config) is None:
                return None
            self._store.judge.require(resolved)
            resolved = kind.completed(resolved, properties.raw)
            return kind.resting(resolved, CommittedOffsets(work.connector, rows).offset)
        except (KeelmanError, ConnectError):
            return None

    async def confirm(self, work: Work, task_config: TaskConfig, *, part: bool = False) -> Sequence[OffsetRow] | None:
        """Returns the committed offsets after the fence; None withdraws the ticket. Raises KeelmanError.

        A task that was split may have parts that still commit: the parts in its plan are fenced, and their commits are
        read. A `part` that fences itself shuts out no other owner of its task; so the group's coordinator has to
        confirm afterwards that this worker still has its place: a next owner will then fence the part.
        """
        if not connector_facts.is_source(task_config[0]):
            await self._read_config()
            return () if self.holds(work, task_config) else None
        if part and not await self._membership.proven():
            return None
        rows = await self._read_committed(work, task_config)
        if not self.holds(work, task_config):
            return None
        parts = 0 if part else plans(work.connector, rows).get(work.task or 0, 0)
        if parts:
            await self._shut_out(task_config, part_ids(self._id(work), parts), seconds=PARTS_SECONDS)
            rows = await self._read_committed(work, task_config)
        return rows if self.holds(work, task_config) else None

    async def _read_committed(self, work: Work, task_config: TaskConfig) -> list[OffsetRow]:
        own: list[OffsetRow] = []

        async def read_own() -> None:
            connector = await self._store.secrets.resolve(task_config[0])
            own.extend(await own_offsets(self._store.properties, work.connector, connector))

        # All three begin after the fence, which is all that matters, and none waits for another.
        await supervise(self._read_config.__call__, self._read_offsets.__call__, read_own)
        return merged_offsets(work.connector, self._store.offsets.of(work.connector), own)

    async def fence(self, work: Work, task_config: TaskConfig) -> None:
        """Aborts transactions that a lost copy run left open, so that no reader waits for them; never raises.

        Only with the right to the task: a worker that has lost its place would fence its successor. A transaction that
        is not fenced here is fenced by the next copy run, or its time-out ends it.
        """
        await self._fence(work, task_config, [self._id(work)])

    async def fence_parts(self, work: Work, task_config: TaskConfig, parts: int) -> bool:
        """As `fence`, for the producers of so many parts beside the task's own; returns whether it was done."""
        return await self._fence(work, task_config, part_ids(self._id(work), parts + 1))

    async def _fence(self, work: Work, task_config: TaskConfig, ids: Sequence[str]) -> bool:
        if not (
            self.holds(work, task_config)
            and connector_facts.is_exactly_once_source(self._store.properties, task_config[0])
        ):
            return False
        try:
            await self._shut_out(task_config, ids, seconds=FENCE_SECONDS)
        except (KeelmanError, ConnectError) as error:
            log.warning("lost_run_unfenced", connector=work.connector, task=work.task, error=str(error))
            return False
        return True

    async def _shut_out(self, task_config: TaskConfig, ids: Sequence[str], *, seconds: float) -> None:
        async with self._fences:
            await self._fence_all(task_config, ids, seconds=seconds)

    async def _fence_all(self, task_config: TaskConfig, ids: Sequence[str], *, seconds: float) -> None:
        client = fencing_client(self._store.properties.raw, await self._store.secrets.resolve(task_config[0]))
        await fence_all(client, ids, client_id=f"fence-{ids[0]}", seconds=seconds)

    def _id(self, work: Work) -> str:
        return connector_facts.transactional_id(self._store.properties.group_id, work)
