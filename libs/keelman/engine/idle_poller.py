"""Looks for new data in one thread for all waiting loops of a process: waking each loop separately many times a second
would be most of the cost of a loop that copies little."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from keelman.engine.control import Control

LOOK_SECONDS = 0.02
QUIET_SECONDS = 0.1
WAIT_SECONDS = 0.5
QUIET_WAIT_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class Waiter:
    """A loop that waits. `has_data` is cheap and waits for nothing; `ring` wakes the loop from any thread."""

    has_data: Callable[[], bool | None]
    ring: Callable[[], None]
    quiet: bool


class IdlePoller:
    """Thread-safe. Its thread starts with the first waiter and lasts as long as the process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiters: dict[int, Waiter] = {}
        self._started = False

    def wait(self, control: Control, has_data: Callable[[], bool | None], *, quiet: bool) -> None:
        """Waits until there is data, an order comes, or a second at most is over. Raises CutShort."""
        waiter = Waiter(has_data, control.wake, quiet)
        self.enter(waiter)
        try:
            control.wait(QUIET_WAIT_SECONDS if quiet else WAIT_SECONDS)
        finally:
            self.leave(waiter)

    def enter(self, waiter: Waiter) -> None:
        """Checks a waiter from now on; a quiet one ten times a second, others fifty."""
        with self._changed:
            self._waiters[id(waiter)] = waiter
            if len(self._waiters) == 1 or not waiter.quiet:
                self._changed.notify_all()
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="idle-poller", daemon=True).start()

    def leave(self, waiter: Waiter) -> None:
        """Stops checking a waiter, whether it was rung or not."""
        with self._changed:
            self._waiters.pop(id(waiter), None)

    def look(self, *, quiet_too: bool) -> bool:
        """Checks once, and rings waiters with data. Returns whether a waiter that is not quiet still waits."""
        with self._changed:
            waiters = list(self._waiters.values())
        lively = False
        for waiter in waiters:
            if waiter.quiet and not quiet_too:
                continue
            if _calls(waiter.has_data):
                self.leave(waiter)
                waiter.ring()
            elif not waiter.quiet:
                lively = True
        return lively

    def _run(self) -> None:
        quiet_due = 0.0
        while True:
            now = time.monotonic()
            if quiet_too := now >= quiet_due:
                quiet_due = now + QUIET_SECONDS
            if self.look(quiet_too=quiet_too):
                time.sleep(LOOK_SECONDS)
                continue
            with self._changed:
                self._changed.wait(max(LOOK_SECONDS, quiet_due - now) if self._waiters else None)


def _calls(has_data: Callable[[], bool | None]) -> bool:
    """Returns whether the loop should look itself; also when it fails, so that the error is the loop's."""
    try:
        return has_data() is not False
    except Exception:
        return True


IDLE_POLLER = IdlePoller()
