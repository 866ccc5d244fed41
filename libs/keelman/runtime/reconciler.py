"""Runs an idempotent function repeatedly, by a timer or when woken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from keelman.model.errors import KeelmanError
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import wait_or_stop

log = get_logger()


@dataclass(slots=True)
class Reconciler:
    """Runs one activation at a time; after an error it logs and retries after a back-off, or when woken."""

    name: str
    function: Callable[[], Awaitable[None]]
    every_seconds: float
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _backoff: Backoff = field(default_factory=Backoff)
    last_error: str = ""

    def wake(self) -> None:
        """Requests an activation soon; many requests before it begins count as one."""
        self._wake.set()

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            self._wake.clear()
            try:
                await self.function()
                self.last_error = ""
                self._backoff.reset()
                pause = self.every_seconds
            except KeelmanError as error:
                self.last_error = error.message
                pause = self._backoff.next()
                log.warning("reconciler_failed", reconciler=self.name, error=error.message)
            except Exception as error:
                self.last_error = repr(error)
                pause = self._backoff.next()
                log.exception("reconciler_failed", reconciler=self.name)
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the function has taken the cancellation for its own
                raise asyncio.CancelledError
            await wait_or_stop(self._wake, pause)
