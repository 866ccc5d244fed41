"""Which connector uses which topic: written to the status topic when a task first uses one, as Connect does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.kafka.layout import Work
from keelman.model.errors import DeadlineExceeded, Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logging import get_logger
from keelman.worker.tables.status_state import topic_key, topic_value
from keelman.worker.tables.store import Store

log = get_logger()
SWEEP_SECONDS = 60.0


class TopicTracking:
    """`used` is told what tasks use; `run` writes it, which takes a moment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._enabled = store.properties.topic_tracking
        self._wanted: dict[tuple[str, str], bytes] = {}
        self._seen: dict[Work, tuple[str, int]] = {}
        self._sweep_at = 0.0
        self._told = asyncio.Event()

    def used(self, work: Work, update: RunUpdate) -> None:
        """A task of this worker uses the topics of an update of its copy run, if it has copied since the one before."""
        records = (update.run_uid, update.progress.records)
        if not self._enabled or not update.topics or self._seen.get(work) == records:
            return
        if update.HasField("progress"):
            self._seen[work] = records
        known = self._store.statuses.topics.get(work.connector, set())
        for topic in update.topics:
            if topic not in known and (topic, work.connector) not in self._wanted:
                self._wanted[topic, work.connector] = topic_value(topic, work, int(time.time() * 1000))
                self._told.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        backoff = Backoff(first=0.1, most=5.0)
        while True:
            await self._told.wait()
            self._told.clear()
            # Deleted meanwhile, or still to be read of: neither is to be written now.
            batch = {at: value for at, value in self._wanted.items() if at[1] in self._store.config.connectors}
            try:
                if batch:
                    written = [(topic_key(topic, connector), value) for (topic, connector), value in batch.items()]
                    await self._store.write_topics_used(written)
            except (Unavailable, DeadlineExceeded) as error:
                log.warning("topics_used_unwritten", error=error.message)
                self._told.set()
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            for at in batch:
                del self._wanted[at]
            there = self._store.config.connectors
            self._wanted = {at: value for at, value in self._wanted.items() if at[1] in there}
            if time.monotonic() >= self._sweep_at:
                self._sweep_at = time.monotonic() + SWEEP_SECONDS
                self._seen = {work: seen for work, seen in self._seen.items() if work.connector in there}

    async def reset(self, connector: str) -> None:
        """Forgets what the connector has used so far: what it uses from now on is written again."""
        used = self._store.statuses.topics.get(connector, set())
        if used:
            await self._store.write_topics_used([(topic_key(topic, connector), None) for topic in sorted(used)])

    async def clear(self, connectors: Iterable[str]) -> None:
        """Forgets what connectors that are no more have used; never raises, for they are gone already."""
        gone = [(topic, name) for name in connectors for topic in self._store.statuses.topics.get(name, ())]
        try:
            if gone:
                await self._store.write_topics_used([(topic_key(topic, name), None) for topic, name in gone])
        except (Unavailable, DeadlineExceeded) as error:
            log.warning("topics_used_unwritten", error=error.message)
