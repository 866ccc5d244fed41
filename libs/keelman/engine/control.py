"""The orders to one copy run, its pace, and its sign of life: the only object that its thread shares with others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from keelman.api.copy.v1.run_order_pb2 import Cut, RunOrder
from keelman.api.copy.v1.ticket_pb2 import Confirmation
from keelman.api.copy.v1.write_job_pb2 import WriteDone

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
        """Sets the limits, 0 for none; earlier spending counts at the new rates."""
        with self._lock:
            self._pay()
            self._rates = (records_per_second, bytes_per_second)

    @property
    def most_records(self) -> int | None:
        """The records to read at a time for an even pace, by the size of the last records; None without a limit."""
        return self.most_records_of(None)

    def most_records_of(self, most_bytes: int | None) -> int | None:
        """Returns `most_records`, limited further to about `most_bytes`."""
        records, size = self._rates
        rates = [r for r in (records, size / self._record_bytes) if r > 0]
        most = [min(rates) * BURST_SECONDS] if rates else []
        if most_bytes is not None:
            most.append(most_bytes / self._record_bytes)
        return max(1, int(min(most))) if most else None

    def spend(self, records: int, size: int) -> None:
        """Counts copied records and bytes."""
        with self._lock:
            self._pay()
            self._debts[0] += records
            self._debts[1] += size
            if records > 0:
                self._record_bytes = max(1.0, size / records)

    def wait_seconds(self) -> float:
        """Returns the seconds to wait before the next read."""
        with self._lock:
            self._pay()
            waits = [d / r - BURST_SECONDS for d, r in zip(self._debts, self._rates, strict=True) if r > 0]
            return max(0.0, *waits) if waits else 0.0

    def _pay(self) -> None:
        now = self._clock()
        gone, self._at = now - self._at, now
        for index, rate in enumerate(self._rates):
            self._debts[index] = max(0.0, self._debts[index] - gone * rate) if rate > 0 else 0.0


class CutShort(Exception):
    """The run had to abort and end at once."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GaveUp(Exception):
    """The run had to drain while a batch waited for a problem to pass: nothing of that batch may be committed."""


class Control:
    """Thread-safe. Orders come from any thread; the run's own thread beats, waits and looks."""

    def __init__(
        self, still_allowed: Callable[[], bool] = lambda: True, rest: Callable[[], float] = lambda: 0.0
    ) -> None:
        """`still_allowed` is called at each beat, so also right before each commit: a slot that was frozen and given up
        must not commit when it wakes. `rest` returns the seconds that this run should rest for the slot's processor
        share.
        """
        self._still_allowed = still_allowed
        self._rest = rest
        self.pace = Pace()
        self._changed = threading.Condition()
        self._cut: str | None = None
        self._draining = False
        self._confirmation: Confirmation | None = None
        self._whole = False
        self._written = WriteDone()
        self._news = False
        self._last_beat = time.monotonic()
        self._excused_until = 0.0

    def apply(self, order: RunOrder) -> None:
        """Takes an order; its start is not for a run's control.

        Of its confirmations the first one counts; a second one means that a split task is whole again.
        """
        with self._changed:
            match order.WhichOneof("order"):
                case "confirm" if self._confirmation is None:
                    self._confirmation = order.confirm
                case "confirm":
                    self._whole = True
                case "drain":
                    self._draining = True
                case "cut":
                    self._cut = self._cut or order.cut.reason
                case "limits":
                    self.pace.limit(order.limits.records_per_second, order.limits.bytes_per_second)
                    self._news = True
                case "written":
                    self._written = order.written
                    self._news = True
                case _:
                    pass
            self._changed.notify_all()

    def cut(self, reason: str) -> None:
        """Has the run abort and end, as by an order; the first reason stays."""
        self.apply(RunOrder(cut=Cut(reason=reason)))

    def await_written(self, number: int, seconds: float) -> bool:
        """Waits at most `seconds` for a write job's result, drained or not. Returns whether it came. Raises
        CutShort."""
        with self._changed:
            self._changed.wait_for(lambda: self._cut is not None or self._written.number == number, seconds)
        self.beat()
        return self._written.number == number

    @property
    def last_written(self) -> WriteDone:
        """The last known result of a write job."""
        return self._written

    def wake(self) -> None:
        """Ends the present wait of the run's thread, or else its next wait."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def must_wait(self) -> float:
        """Returns the seconds before the run may read again: for its limits or its slot's share of the processors."""
        return max(self.pace.wait_seconds(), self._rest())

    def silent_seconds(self) -> float:
        """Returns the seconds since the run's thread last beat, without excused ones."""
        return max(0.0, time.monotonic() - max(self._last_beat, self._excused_until))

    @property
    def draining(self) -> bool:
        """Whether the run was ordered to drain."""
        return self._draining

    @property
    def whole(self) -> bool:
        """Whether no other copy run copies a part of the task's backlog any more."""
        return self._whole

    def excuse(self, seconds: float) -> None:
        """Allows the run's thread to be silent for `seconds` while it begins, at most until `begun`."""
        self._excused_until = time.monotonic() + seconds

    def begun(self) -> None:
        """Notes that the run has begun to copy: from now on its thread beats."""
        self._excused_until = 0.0

    def beat(self) -> None:
        """Notes that the run's thread is alive. Raises CutShort when the run must end at once or may not copy any
        more."""
        self._last_beat = time.monotonic()
        if self._cut is None and not self._still_allowed():
            self.cut("HOME_LOST")
        if self._cut is not None:
            raise CutShort(self._cut)

    def wait(self, seconds: float) -> None:
        """Waits `seconds`, less when an order comes or came since the last wait. Raises CutShort."""
        with self._changed:
            if self._cut is None and not self._draining and not self._news:
                self._changed.wait(seconds)
            self._news = False
        self.beat()

    def await_confirmation(self) -> Confirmation | None:
        """Waits for the confirmation, beating; None when ordered to drain before it came. Raises CutShort."""
        while True:
            self.beat()
            with self._changed:
                if self._confirmation is not None:
                    return self._confirmation
                if self._draining:
                    return None
                if self._cut is None:
                    self._changed.wait(1.0)
