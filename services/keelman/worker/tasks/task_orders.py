"""Keeps the orders to a task: to copy or to pause, to start again, to park, to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from keelman.worker.storage import status_state as states


class TaskOrders:
    """Set by the task's owner, read by the task's coroutine. `changed` is set with every change."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.wanted = states.RUNNING
        self.again = False
        self.ending = False
        self.cut = False
        self.parked = False
        self.woken = False

    def want(self, state: str) -> None:
        """Sets the wanted state, RUNNING or PAUSED."""
        if self.wanted != state:
            self.wanted = state
            self.changed.set()

    def restart(self) -> None:
        """Orders a new beginning."""
        self.again = True
        self.changed.set()

    def end(self, *, cut: bool) -> None:
        """Orders the end, at once if `cut`."""
        self.ending = True
        self.cut = self.cut or cut
        self.changed.set()

    def park(self) -> None:
        """Orders the end of the copy run; the next one begins at `wake`."""
        self.parked, self.woken = True, False
        self.changed.set()

    def wake(self) -> None:
        """Notes that there is something to copy."""
        self.woken = True
        self.changed.set()

    @property
    def unwanted(self) -> bool:
        """Whether no copy run from before is wanted any more."""
        return self.ending or self.again or self.wanted != states.RUNNING

    async def until(self, condition: Callable[[], bool], *, seconds: float | None = None) -> bool:
        """Waits for the condition or the end (True), or for the time (False)."""
        try:
            async with asyncio.timeout(seconds):
                while not (self.ending or condition()):
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True
