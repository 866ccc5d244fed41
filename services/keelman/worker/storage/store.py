"""The worker's three topics: tables in memory, and the writers. The only durable state that a worker has."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from keelman.kafka.clients import admin_client
from keelman.kafka.table import Row, TopicTable
from keelman.kafka.topics import topics_there
from keelman.kafka.writer import FencingWriter, Record, TopicWriter
from keelman.model.errors import Unavailable
from keelman.model.work import Work
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of, supervise
from keelman.worker.config.secrets import Secrets
from keelman.worker.config.typed import WorkerProperties
from keelman.worker.storage import config_records as records
from keelman.worker.storage.change_set import ChangeSet
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.offset_state import OffsetState
from keelman.worker.storage.passed_over import PassedOver, text_of
from keelman.worker.storage.status_state import Status, StatusState, work_of
from keelman.worker.storage.status_writer import StatusWriter

log = get_logger()
READ_SECONDS = 60.0
NO_PLACE = "NO_PLACE"
OnLevel = Callable[[str, str], None]


class Store:
    """Open it with `opened`; `run()` must run inside the block."""

    def __init__(
        self,
        properties: WorkerProperties,
        *,
        partitions: tuple[int, int, int],
        worker_id: str,
        may_write: Callable[[], bool],
        on_change: Callable[[], None],
        on_level: OnLevel,
    ) -> None:
        """No callback may block or raise.

        `may_write` says whether this worker still has its place in the group: without it nothing is written that a
        successor could have written otherwise since. `on_change` is called after `change_sets` were notified, and
        after each status of a connector, not of a task. `on_level` is called with logger and level that all workers
        are ordered to have, not with orders of before `read_all`.
        """
        self.properties = properties
        self.config = ConfigState()
        self.statuses = StatusState()
        self.offsets = OffsetState()
        self.secrets = Secrets(properties.raw, self._value_changed)
        self._may_write, self._on_change, self._on_level = may_write, on_change, on_level
        self.group_offsets = asyncio.Lock()
        """Held while offsets of a sink's group are changed from outside: one at a time reads them and writes them."""
        self.change_sets: list[ChangeSet] = []
        """Told which connectors have changed: configuration, target state, a value that it refers to, own status."""
        self.status_change_sets: list[ChangeSet] = []
        """Told of which connectors there is a new status, of theirs or of a task of theirs."""
        self._live = False  # orders of the past are not obeyed
        client = f"{properties.group_id}-leader-{worker_id}"
        topics = (properties.config_topic, properties.offset_topic, properties.status_topic)
        self._odd_config, self._odd_offset, self._odd_status = (PassedOver(topic.name) for topic in topics)
        self._configs = TopicTable(properties.config_topic.name, partitions[0], self._config_row)
        self._offsets = TopicTable(properties.offset_topic.name, partitions[1], self._offset_row)
        self._statuses = TopicTable(properties.status_topic.name, partitions[2], self._status_row)
        self._writer: TopicWriter | None = None
        self._fencing = FencingWriter(
            properties.raw, client_id=client, transactional_id=f"connect-cluster-{properties.group_id}"
        )
        self._next_config = asyncio.Event()
        self._config_read = 0.0  # when the last read of it that has ended began
        self.status_writer = StatusWriter(
            self.config,
            self.statuses,
            write=self._write_status_records,
            read_config=self.read_config,
            may_write=may_write,
        )

    @staticmethod
    @contextlib.asynccontextmanager
    async def opened(
        properties: WorkerProperties,
        *,
        worker_id: str,
        may_write: Callable[[], bool],
        on_change: Callable[[], None],
        on_level: OnLevel,
    ) -> AsyncIterator[Store]:
        """Makes missing topics, refuses wrong ones (FailedPrecondition) and opens the clients."""
        client_id = f"{properties.group_id}-{worker_id}"
        async with admin_client(properties.raw, client_id=client_id) as admin:
            wanted = (properties.config_topic, properties.offset_topic, properties.status_topic)
            found = await topics_there(admin, wanted)
        store = Store(
            properties,
            partitions=(found[0], found[1], found[2]),
            worker_id=worker_id,
            may_write=may_write,
            on_change=on_change,
            on_level=on_level,
        )
        raw, committed = properties.raw, properties.fenced
        async with contextlib.AsyncExitStack() as stack:
            store._writer = await stack.enter_async_context(TopicWriter.opened(raw, client_id=client_id))
            stack.push_async_callback(store._fencing.close)
            followed = ((store._configs, committed), (store._offsets, committed), (store._statuses, False))
            for table, read_committed in followed:
                await stack.enter_async_context(table.opened(raw, client_id=client_id, read_committed=read_committed))
            yield store

    async def run(self) -> None:
        """Follows the topics and writes statuses, until cancelled."""
        follow = (self._configs.follow, self._offsets.follow, self._statuses.follow)
        await supervise(*follow, self.status_writer.run, self.secrets.run)

    async def read_all(self) -> None:
        """Reads the three topics to their ends: the worker knows what is.

        Raises DeadlineExceeded, Unavailable, and at once PermissionDenied.
        """
        for table in (self._configs, self._offsets, self._statuses):
            await first_of(table.read_to_end(seconds=READ_SECONDS), table.kept_out())
        self._live = True

    async def read_config(self, *, seconds: float = READ_SECONDS, since: float = math.inf) -> None:
        """Reads the config topic to its end, unless that was done since (by the monotonic clock)."""
        if self._config_read > since:
            return
        begun = time.monotonic()
        await self._configs.read_to_end(seconds=seconds)
        self._config_read = max(begun, self._config_read)

    @property
    def followed_at(self) -> float:
        """When the config topic's brokers had last answered whoever follows it, by the monotonic clock."""
        return self._configs.heard_at

    @property
    def known_at(self) -> float:
        """As of when this worker knows what is configured and what its statuses are, by the same clock."""
        return min(self._configs.heard_at, self._statuses.heard_at)

    @property
    def knows_config(self) -> bool:
        """Whether this worker, which leads, has read all that leaders before it have written: it has read since it has
        claimed. Whether another has claimed since, the next write tells."""
        claimed = self._fencing.claimed_at
        return self.properties.fenced and claimed is not None and self._config_read > claimed

    async def config_changes(self) -> None:
        """Returns after the next record of the config topic."""
        await self._next_config.wait()

    async def claim(self) -> None:
        """The leader's claim on the config topic: fences the leader before."""
        if self.properties.fenced:
            await self._fencing.claim()

    async def claimed_anew(self) -> bool:
        """Has the claim that a write needs; True where it had to be made: what was read before may be old."""
        if not self.properties.fenced or self._fencing.claimed_at is not None:
            return False
        self._require_right()
        await self._fencing.claim()
        return True

    async def write_config(self, written: Sequence[Record]) -> None:
        """The leader's write; returns when this worker's table has it, and all that was written before.

        Raises Conflict when there is another leader, Unavailable, NO_PLACE while this worker cannot know of one,
        Exhausted for a record that is too large.
        """
        self._require_right()
        topic, begun = self.properties.config_topic.name, time.monotonic()
        if self.properties.fenced:
            ends = await self._fencing.write(topic, written)
        else:
            tasks, rest = records.tasks_apart(written)
            await self._plain.write(topic, tasks)
            ends = await self._plain.write(topic, rest)
        if min(ends.values(), default=0) > 0:
            await self._configs.read_to(ends, seconds=READ_SECONDS)
            self._config_read = max(begun, self._config_read)
        else:  # a broker that had it already does not say where
            await self.read_config()

    def _require_right(self) -> None:
        if not self._may_write():
            why = "the group has not said lately that this worker still has its place in it"
            raise Unavailable(why, reason=NO_PLACE)

    async def write_target(self, connector: str, target: str) -> None:
        """Any worker's write of a target state; returns when this worker's table has it."""
        await self._plain.write(self.properties.config_topic.name, [records.target_record(connector, target)])
        await self.read_config()

    async def write_level(self, logger: str, level: str) -> None:
        """Any worker's order to all of them: their `on_level` is called."""
        await self._plain.write(self.properties.config_topic.name, [records.logger_record(logger, level)])
        await self.read_config()

    async def write_offsets(self, written: Sequence[Record]) -> None:
        """Writes rows of the offset topic, outside of any transaction."""
        await self._plain.write(self.properties.offset_topic.name, written)

    async def write_topics_used(self, written: Sequence[Record]) -> None:
        """Writes which connector uses which topic; returns when this worker's table has it."""
        await self._plain.write(self.properties.status_topic.name, written)
        await self.read_statuses()

    async def read_statuses(self) -> None:
        """Reads the status topic to its end. Raises DeadlineExceeded, Unavailable."""
        await self._statuses.read_to_end(seconds=READ_SECONDS)

    async def read_offsets(self) -> None:
        """Reads the offset topic to its end: everything that is there at the call is either committed or aborted."""
        await self._offsets.read_to_end(seconds=30.0)

    def committed(self, connector: str, offsets: Mapping[str, str]) -> None:
        """What a copy run says that it has committed; here the offset topic has it."""

    def tell(self, work: Work, status: Status | None) -> None:
        """Has a status (None: a tombstone) written soon; the newest of each wins."""
        self.status_writer.put(work, status)

    def forget_told(self) -> None:
        """The group has lost this worker: the statuses of its work that are not written yet are another's to write."""
        self.status_writer.forget()

    async def flush(self, *, seconds: float) -> None:
        """Waits until the statuses that were put are written, at most so long."""
        await self.status_writer.flush(seconds=seconds)

    @property
    def _plain(self) -> TopicWriter:
        assert self._writer is not None
        return self._writer

    async def _write_status_records(self, written: Sequence[Record]) -> None:
        await self._plain.write(self.properties.status_topic.name, written)

    def changed_about(self, connector: str) -> None:
        """Something about this connector is another than it was: whoever looks after connectors has a look."""
        for change_sets in self.change_sets:
            change_sets.tell((connector,))
        self._on_change()

    def _value_changed(self) -> None:
        for change_sets in self.change_sets:
            change_sets.tell_all()
        self._on_change()

    def _config_row(self, row: Row) -> None:
        key = text_of(row.key)
        self._odd_config.tell(row, self.config.apply(key, row.value, row.offset))
        if self._live and (level := records.logger_level(key, row.value)) is not None:
            self._on_level(*level)
        self._next_config.set()
        self._next_config = asyncio.Event()
        self.changed_about(records.connector_of(key) or "")

    def _offset_row(self, row: Row) -> None:
        self._odd_offset.tell(row, self.offsets.apply(row.key, row.value))

    def _status_row(self, row: Row) -> None:
        key = text_of(row.key)
        self._odd_status.tell(row, self.statuses.apply(key, row.value))
        self.status_writer.read(key)
        if (work := work_of(key)) is not None:
            for change_sets in self.status_change_sets:
                change_sets.tell((work.connector,))
        if key.startswith("status-connector-"):
            for change_sets in self.change_sets:
                change_sets.tell((key.removeprefix("status-connector-"),))
            self._on_change()
