"""The orders to one copy run, and its sign of life: the only thing that its thread and the others share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from keelman.api.copy.v1.ticket_pb2 import Confirmation, Limits
from keelman.api.copy.v1.write_job_pb2 import WriteDone
from keelman.engine.pace import Pace


class CutShort(Exception):
    """The run was told to abort and end at once."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GaveUp(Exception):
    """The run was told to drain while a batch waited for what may pass: nothing of that batch may be committed."""


class Control:
    """Thread-safe. Orders come from any thread; the run's own thread beats, waits and looks."""

    def __init__(
        self, still_allowed: Callable[[], bool] = lambda: True, rest: Callable[[], float] = lambda: 0.0
    ) -> None:
        """`still_allowed` is asked at each beat, so also right before each commit: a slot that was frozen and given up
        must not commit when it wakes. `rest` gives the seconds that the slot's processor share wants this run to rest.
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

    def confirm(self, confirmation: Confirmation) -> None:
        """The ticket still holds; the first confirmation counts. A second one says that a split task is whole again."""
        with self._changed:
            if self._confirmation is None:
                self._confirmation = confirmation
            else:
                self._whole = True
            self._changed.notify_all()

    def drain(self) -> None:
        """Commit what is read and end."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()

    def cut(self, reason: str) -> None:
        """Abort and end; the first reason stays."""
        with self._changed:
            self._cut = self._cut or reason
            self._changed.notify_all()

    def limit(self, limits: Limits) -> None:
        """Copy no faster than this from now on."""
        self.pace.limit(limits.records_per_second, limits.bytes_per_second)
        self.wake()

    def written(self, done: WriteDone) -> None:
        """What came of a write job."""
        with self._changed:
            self._written = done
            self._news = True
            self._changed.notify_all()

    def await_written(self, number: int, seconds: float) -> bool:
        """Waits that long for what comes of this write job, drained or not; whether it has come. Raises CutShort."""
        with self._changed:
            self._changed.wait_for(lambda: self._cut is not None or self._written.number == number, seconds)
        self.beat()
        return self._written.number == number

    @property
    def last_written(self) -> WriteDone:
        """What came of the last write job of which anything is known."""
        return self._written

    def wake(self) -> None:
        """Ends the wait that the run's thread is in, or else its next one."""
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def must_wait(self) -> float:
        """Seconds before the run may read again: for its limits or for its slot's share of the processors."""
        return max(self.pace.wait_seconds(), self._rest())

    def silent_seconds(self) -> float:
        """Seconds since the run's thread last beat."""
        return time.monotonic() - self._last_beat

    @property
    def draining(self) -> bool:
        """Whether the run was told to drain."""
        return self._draining

    @property
    def whole(self) -> bool:
        """Whether no part of the task's backlog is copied elsewhere any more."""
        return self._whole

    def beat(self) -> None:
        """The run's thread is alive. Raises CutShort when it was told to end at once, or may copy no longer."""
        self._last_beat = time.monotonic()
        if self._cut is None and not self._still_allowed():
            self.cut("HOME_LOST")
        if self._cut is not None:
            raise CutShort(self._cut)

    def wait(self, seconds: float) -> None:
        """Waits that long, less when an order comes or came since the last wait. Raises CutShort."""
        with self._changed:
            if self._cut is None and not self._draining and not self._news:
                self._changed.wait(seconds)
            self._news = False
        self.beat()

    def await_confirmation(self) -> Confirmation | None:
        """Waits for the confirmation, beating; None when told to drain before it came. Raises CutShort."""
        while True:
            self.beat()
            with self._changed:
                if self._confirmation is not None:
                    return self._confirmation
                if self._draining:
                    return None
                if self._cut is None:
                    self._changed.wait(1.0)
