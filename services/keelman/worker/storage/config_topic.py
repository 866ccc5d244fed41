"""Reads the config topic into a `ConfigState`, and writes it: by the leader and by any worker."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence

from keelman.kafka.tables.table import Row
from keelman.kafka.writer import FencingWriter, Record
from keelman.model.errors import Unavailable
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_state import ConfigState
from keelman.worker.storage.passed_over import PassedOver, text_of
from keelman.worker.storage.topics import READ_SECONDS, Topics
from keelman.workers.properties.typed import WorkerProperties

NO_PLACE = "NO_PLACE"
OnLevel = Callable[[str, str], None]


class ConfigTopic:
    """`state` has the records read so far. Part of the `WorkerStore`, which opens, follows and closes it."""

    def __init__(
        self,
        properties: WorkerProperties,
        topics: Topics,
        *,
        worker_id: str,
        may_write: Callable[[], bool],
        on_record: Callable[[str], None],
        on_level: OnLevel,
    ) -> None:
        """Calls `on_record` after each record, with its connector or "" where it has none. The other callbacks are
        those of `StoreCallbacks`."""
        self.state = ConfigState()
        self.live = False
        """Whether orders are applied: those from before the first read to the end are of the past."""
        self.table = topics.table(properties.config_topic.name, self._apply)
        self.fencing = FencingWriter(
            properties.raw,
            client_id=f"{properties.group_id}-leader-{worker_id}",
            transactional_id=f"connect-cluster-{properties.group_id}",
        )
        self._writer = topics.writer
        self._fenced = properties.fenced
        self._may_write, self._on_record, self._on_level = may_write, on_record, on_level
        self._odd = PassedOver(self.name)
        self._next_record = asyncio.Event()
        self._read_at = 0.0  # begin of the last read of it that has ended

    @property
    def name(self) -> str:
        """The topic's."""
        return self.table.topic

    @property
    def heard_at(self) -> float:
        """The last answer of the topic's brokers to its followers, by the monotonic clock."""
        return self.table.heard_at

    @property
    def is_current(self) -> bool:
        """Whether this worker, which leads, has read everything that earlier leaders wrote: it has read since its
        claim. The next write finds out whether another has claimed since."""
        claimed = self.fencing.claimed_at
        return self._fenced and claimed is not None and self._read_at > claimed

    async def read(self, *, seconds: float = READ_SECONDS, since: float = math.inf) -> None:
        """Reads the topic to its end, unless that was done since (by the monotonic clock).

        Raises DeadlineExceeded, Unavailable.
        """
        if self._read_at > since:
            return
        begun = time.monotonic()
        await self.table.read_to_end(seconds=seconds)
        self._read_at = max(begun, self._read_at)

    async def next_record(self) -> None:
        """Returns after the next record of the topic."""
        await self._next_record.wait()

    async def claim(self) -> None:
        """Makes the leader's claim on the topic: fences the leader before. Raises Unavailable."""
        if self._fenced:
            await self.fencing.claim()

    async def claim_if_lost(self) -> bool:
        """Makes the claim that a write needs; returns whether it had to be made: earlier reads may be outdated then."""
        if not self._fenced or self.fencing.claimed_at is not None:
            return False
        self._require_place()
        await self.fencing.claim()
        return True

    async def write(self, written: Sequence[Record]) -> None:
        """Makes the leader's write; returns when `state` has it, and all earlier writes.

        Raises Conflict when there is another leader, Unavailable, NO_PLACE while this worker cannot know of one,
        Exhausted for a record that is too large.
        """
        self._require_place()
        begun = time.monotonic()
        if self._fenced:
            ends = await self.fencing.write(self.name, written)
        else:
            tasks, rest = records.tasks_apart(written)
            await self._writer.write(self.name, tasks)
            ends = await self._writer.write(self.name, rest)
        if min(ends.values(), default=0) > 0:
            await self.table.read_to(ends, seconds=READ_SECONDS)
            self._read_at = max(begun, self._read_at)
        else:  # a broker that had it already does not return where
            await self.read()

    def _require_place(self) -> None:
        if not self._may_write():
            reason = "the group has not confirmed lately that this worker is still a member"
            raise Unavailable(reason, reason=NO_PLACE)

    async def write_target(self, connector: str, target: str) -> None:
        """Makes any worker's write of a target state; returns when `state` has it."""
        await self._writer.write(self.name, [records.target_record(connector, target)])
        await self.read()

    async def write_level(self, logger: str, level: str) -> None:
        """Makes any worker's order to all of them: their `on_level` is called."""
        await self._writer.write(self.name, [records.logger_record(logger, level)])
        await self.read()

    def _apply(self, row: Row) -> None:
        key = text_of(row.key)
        self._odd.log(row, self.state.apply(key, row.value, row.offset))
        if self.live and (level := records.logger_level(key, row.value)) is not None:
            self._on_level(*level)
        self._next_record.set()
        self._next_record = asyncio.Event()
        self._on_record(records.connector_of(key) or "")
