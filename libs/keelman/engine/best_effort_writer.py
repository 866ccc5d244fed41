"""Writes records beside a copy, in no transaction: the copy does not wait for them, and does not fail with them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Mapping, Sequence

from keelman.kafka.writer import Record, TopicWriter
from keelman.model.errors import KeelmanError
from keelman.runtime.side_loop import KAFKA_LOOP

MAX_WAITING = 1000
"""Records; more than so many are not taken."""
BEAT_SECONDS = 0.5
FULL = f"more than {MAX_WAITING} records wait for their broker"


class BestEffortWriter:
    """Writes one thread's records to one topic, in order; works in the loop of all Kafka requests."""

    def __init__(
        self,
        properties: Mapping[str, str],
        topic: str,
        *,
        client_id: str,
        failed: Callable[[str], None],
        partition: int | None = None,
    ) -> None:
        """`properties` are Java's. Connects with the first records. `failed` gets why records are lost, in another
        thread. Without a `partition` keys decide, as with Java's producer."""
        self._writer = TopicWriter(properties, properties.get("client.id", client_id))
        self._topic = topic
        self._failed = failed
        self._partition = partition
        self._lock = threading.Lock()
        self._waiting: list[Record] = []
        self._writing: concurrent.futures.Future[None] | None = None

    def write(self, records: Sequence[Record]) -> None:
        """Takes them, and returns at once."""
        with self._lock:
            full = len(self._waiting) + len(records) > MAX_WAITING
            if not full:
                self._waiting += records
            if self._waiting and self._writing is None:
                self._writing = KAFKA_LOOP.start(self._write())
        if full:
            self._failed(FULL)

    def flush(self, seconds: float, beat: Callable[[], None] = lambda: None) -> bool:
        """Returns whether nothing waits any more, after so long at most; `beat` is called now and then, and may
        raise."""
        for _ in range(max(1, round(seconds / BEAT_SECONDS))):
            with self._lock:
                writing = self._writing
            if writing is None:
                return True
            beat()
            concurrent.futures.wait([writing], BEAT_SECONDS)
        with self._lock:
            return self._writing is None

    def close(self, seconds: float) -> None:
        """Waits at most `seconds` for records that are under way; drops the rest."""
        self.flush(seconds)
        with self._lock:
            writing, self._waiting = self._writing, []
        if writing is not None:
            writing.cancel()
        KAFKA_LOOP.start(self._writer.close())

    async def _write(self) -> None:
        while True:
            with self._lock:
                records, self._waiting = self._waiting, []
                if not records:
                    self._writing = None
                    return
            try:
                await self._writer.write(self._topic, records, partition=self._partition)
            except asyncio.CancelledError:
                raise
            except (KeelmanError, OSError) as error:
                self._failed(str(error))
