"""How fast a copy run may go: limits that change while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

BURST_SECONDS = 0.1
GUESSED_RECORD_BYTES = 1000.0


class Pace:
    """Two token buckets, records and bytes. Orders may come from any thread; the run's own thread spends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rates = (0.0, 0.0)
        self._debts = [0.0, 0.0]
        self._record_bytes = GUESSED_RECORD_BYTES
        self._at = clock()

    def limit(self, records_per_second: float, bytes_per_second: float) -> None:
        """Sets the limits, 0 for none; what was spent before counts at the new rates."""
        with self._lock:
            self._pay()
            self._rates = (records_per_second, bytes_per_second)

    @property
    def most_records(self) -> int | None:
        """How many records to read at a time so that the pace is even, by the size of the last ones; None without a
        limit."""
        return self.most_records_of(None)

    def most_records_of(self, most_bytes: int | None) -> int | None:
        """As `most_records`, and no more than take so many bytes."""
        records, size = self._rates
        rates = [r for r in (records, size / self._record_bytes) if r > 0]
        most = [min(rates) * BURST_SECONDS] if rates else []
        if most_bytes is not None:
            most.append(most_bytes / self._record_bytes)
        return max(1, int(min(most))) if most else None

    def spend(self, records: int, size: int) -> None:
        """Counts what was copied."""
        with self._lock:
            self._pay()
            self._debts[0] += records
            self._debts[1] += size
            if records > 0:
                self._record_bytes = max(1.0, size / records)

    def wait_seconds(self) -> float:
        """How long to wait from now before anything more is read."""
        with self._lock:
            self._pay()
            waits = [d / r - BURST_SECONDS for d, r in zip(self._debts, self._rates, strict=True) if r > 0]
            return max(0.0, *waits) if waits else 0.0

    def _pay(self) -> None:
        now = self._clock()
        gone, self._at = now - self._at, now
        for index, rate in enumerate(self._rates):
            self._debts[index] = max(0.0, self._debts[index] - gone * rate) if rate > 0 else 0.0
