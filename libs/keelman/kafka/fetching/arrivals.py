"""A queue of fetched data: a loop puts data in, any thread takes it out."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from keelman.kafka.fetching.fetched import Fetched
from keelman.runtime.supervise import wait_or_stop


class Arrivals:
    """Made in the loop that puts; `take` and `waiting` are for any thread, all others for the loop."""

    def __init__(self, most_bytes: int, on_change: Callable[[], None]) -> None:
        """`on_change` is called in the loop whenever there is something to take."""
        self._most_bytes = most_bytes
        self._on_change = on_change
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Fetched] = deque()
        self._bytes = 0
        self._room = asyncio.Event()
        self._room.set()
        self._news = asyncio.Event()
        self._failure: BaseException | None = None

    def put(self, fetched: Fetched) -> None:
        """Adds data and never waits: the amount is limited before it is requested."""
        with self._lock:
            self._waiting.append(fetched)
            self._bytes += fetched.size
            if self._bytes >= self._most_bytes:
                self._room.clear()
        self._notify()

    def fail(self, error: BaseException) -> None:
        """Ends the queue with this error; the first failure counts."""
        self._failure = self._failure or error
        self._notify()

    async def room(self) -> None:
        """Waits until there is less than `most_bytes`."""
        await self._room.wait()

    async def wait(self, seconds: float) -> None:
        """Waits until there is something to take, at most `seconds`."""
        if not self.waiting:
            self._news.clear()
            await wait_or_stop(self._news, seconds)

    def take(self) -> list[Fetched]:
        """Returns all data in order. Raises the failure once all data before it is taken."""
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
            was_full = self._bytes >= self._most_bytes
            self._bytes = 0
        if was_full:
            self._loop.call_soon_threadsafe(self._room.set)
        if not taken and self._failure is not None:
            raise self._failure
        return taken

    @property
    def waiting(self) -> bool:
        """Whether there is something to take now, even only a failure."""
        return bool(self._waiting) or self._failure is not None

    def _notify(self) -> None:
        self._news.set()
        self._on_change()
