"""Tracks which connector uses which topic: in the status topic, at a task's first use, as Connect does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.model.work import Work
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.worker.storage.status_state import topic_key, topic_value
from keelman.worker.storage.store import WorkerStore

log = get_logger()
SWEEP_SECONDS = 60.0


@dataclass(slots=True)
class _Use:
    """The use of a topic by a connector: its record's value, how far the config topic was read when it was noted, and
    whether the record may have been written."""

    value: bytes
    since: int
    tried: bool = False


class TopicTracking:
    """`used` takes the topics that tasks use; `run` writes them, which takes a moment."""

    def __init__(self, store: WorkerStore) -> None:
        self._store = store
        self._topic = store.status_topic
        self._enabled = store.properties.topic_tracking
        self._wanted: dict[tuple[str, str], _Use] = {}
        self._seen: dict[Work, tuple[str, int]] = {}
        self._sweep_at = 0.0
        self._reported = asyncio.Event()

    def used(self, work: Work, update: RunUpdate) -> None:
        """Notes the topics of an update of a task's copy run, if it has copied since the one before."""
        records = (update.run_uid, update.progress.records)
        if not self._enabled or not update.topics or self._seen.get(work) == records:
            return
        if update.HasField("progress"):
            self._seen[work] = records
        topics = self._store.statuses.topics.get(work.connector, set())
        for topic in update.topics:
            use = self._wanted.get((topic, work.connector))
            if topic not in topics and (use is None or not self._is_there(work.connector, use)):
                value = topic_value(topic, work, int(time.time() * 1000))
                self._wanted[topic, work.connector] = _Use(value, self._store.config.offset)
                self._reported.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        backoff = Backoff(first=0.1, most=5.0)
        while True:
            await self._reported.wait()
            self._reported.clear()
            try:
                await self._write()
            except (Unavailable, DeadlineExceeded) as error:
                log.warning("topics_used_unwritten", error=error.message)
                self._reported.set()
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            if time.monotonic() >= self._sweep_at:
                there = self._store.config.connectors
                self._sweep_at = time.monotonic() + SWEEP_SECONDS
                self._seen = {work: seen for work, seen in self._seen.items() if work.connector in there}

    async def _write(self) -> None:
        """Writes the topics of connectors that are still the same ones. A record that was on its way when its connector
        was deleted, unseen by the delete, is taken back: a new connector of the name has not used the topic."""
        uses = dict(self._wanted)
        written = {at: use for at, use in uses.items() if self._is_there(at[1], use)}
        for use in written.values():
            use.tried = True
        if written:
            await self._topic.write_topics_used([(topic_key(*at), use.value) for at, use in written.items()])
            await self._store.config_topic.read()
        late = [at for at, use in uses.items() if use.tried and not self._is_there(at[1], use)]
        if late:
            await self._topic.write_topics_used([(topic_key(*at), None) for at in late])
        self._wanted = {at: use for at, use in self._wanted.items() if uses.get(at) is not use}

    def _is_there(self, connector: str, use: _Use) -> bool:
        """Returns whether the connector is the same one: neither deleted since nor unread yet."""
        config = self._store.config
        return connector in config.connectors and not config.deleted.since(connector, use.since)

    async def reset(self, connector: str) -> None:
        """Forgets the topics that the connector has used so far: new uses are written again."""
        used = self._store.statuses.topics.get(connector, set())
        if used:
            await self._topic.write_topics_used([(topic_key(topic, connector), None) for topic in sorted(used)])

    async def clear(self, connectors: Iterable[str]) -> None:
        """Forgets the topics of deleted connectors; never raises, for they are gone already."""
        try:
            if self._enabled:
                await self._topic.read()  # another worker may have written about one just before it went
            gone = [(topic, name) for name in connectors for topic in self._store.statuses.topics.get(name, ())]
            if gone:
                await self._topic.write_topics_used([(topic_key(topic, name), None) for topic, name in gone])
        except (Unavailable, DeadlineExceeded) as error:
            log.warning("topics_used_unwritten", error=error.message)
