"""The ends of partitions that are written in transactions over time, for the oracle to find stuck ones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable

from chaos.chaos_kafka import Partition, Topics
from support.oracle import Sample

EVERY_SECONDS = 1.0
FRESH_SECONDS = 5.0
AWAY_SECONDS = 15.0
BLIND_SECONDS = 30.0


class Ends:
    """Observes the partitions of topics, some of which are created later."""

    def __init__(self, topics: Topics, names: Iterable[str]) -> None:
        self.samples: list[Sample] = []
        """Their seconds stop while no broker answers: a broker that is away does not block a reader."""
        self._topics, self._names = topics, set(names)
        self._looked = time.monotonic()
        self._away = 0.0

    async def watch(self) -> None:
        """Takes samples until it is cancelled."""
        while True:
            with contextlib.suppress(Exception):  # the broker is away: the next look succeeds
                partitions: list[Partition] = []
                for topic in self._names:  # again each time: topics come, are created anew and get partitions
                    partitions += await asyncio.to_thread(self._topics.partitions, topic)
                ends = await asyncio.to_thread(self._topics.all_ends, partitions)
                now = time.monotonic()
                if now - self._looked > AWAY_SECONDS:
                    self._away += now - self._looked
                self._looked = now
                self.samples += [Sample(now - self._away, f"{t}-{p}", *ends[t, p]) for t, p in partitions]
            await asyncio.sleep(EVERY_SECONDS)

    @property
    def stable(self) -> bool:
        """Whether the latest look found no open transaction."""
        latest = {s.partition: s for s in self.samples}
        fresh = time.monotonic() - self._looked < FRESH_SECONDS
        return bool(latest) and fresh and all(s.last_stable >= s.end for s in latest.values())

    def check(self) -> None:
        """Raises AssertionError if the last look is too old to tell whether a transaction is stuck."""
        assert self.samples, "no partition was checked"
        assert time.monotonic() - self._looked < BLIND_SECONDS, "it is unknown whether a transaction is stuck"
