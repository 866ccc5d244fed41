"""Queues updates for a reader that may be slower than their writers: keeps all state changes, and the newest
progress."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from keelman.api.copy.v1.run_order_pb2 import RunUpdate


class UpdateQueue:
    """Holds at most one update for each state that a copy run goes through: bounded by the number of runs.

    `put` may be called from any thread; `get` from the one event loop that the queue was made in.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._filled = asyncio.Event()
        self._lock = threading.Lock()
        self._pending: dict[str, deque[RunUpdate]] = {}
        self._urgent: RunUpdate | None = None
        self._woken = False

    def put(self, update: RunUpdate, *, first: bool = False) -> None:
        """Adds an update; it replaces its copy run's last queued update if that has the same state.

        An update with `first` precedes all others, and replaces an earlier one with `first`.
        """
        with self._lock:
            if first:
                self._urgent = update
            else:
                self._add(update)
            if self._woken:
                return
            self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._filled.set)
        except RuntimeError:  # the loop is closed, and has no reader any more
            return

    def _add(self, update: RunUpdate) -> None:
        waiting = self._pending.setdefault(update.run_uid, deque())
        if waiting and waiting[-1].state == update.state:
            waiting[-1] = update
        else:
            waiting.append(update)

    async def get(self) -> RunUpdate:
        """Takes the next update, copy runs in turn, each one's in order."""
        while True:
            update = self._take()
            if update is not None:
                return update
            await self._filled.wait()

    def _take(self) -> RunUpdate | None:
        with self._lock:
            if self._urgent is not None:
                urgent, self._urgent = self._urgent, None
                return urgent
            uid = next(iter(self._pending), None)
            if uid is None:
                self._woken = False
                self._filled.clear()
                return None
            waiting = self._pending.pop(uid)
            update = waiting.popleft()
            if waiting:
                self._pending[uid] = waiting
            return update

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._pending.values())) + (self._urgent is not None)
