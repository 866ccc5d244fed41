"""An event loop in a thread of its own, for threads that wait for what coroutines do.

A task loop is a plain thread; the Kafka requests of all task loops of a process share this one loop, its sockets and no
further threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

BEAT_SECONDS = 0.5
END_SECONDS = 5.0


class SideLoop:
    """Thread-safe. The thread starts with the first use and lasts as long as the process; a forked one begins anew."""

    def __init__(self, name: str) -> None:
        """`name` is the thread's."""
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        os.register_at_fork(after_in_child=self._forget)

    def call(self, work: Coroutine[Any, Any, T], beat: Callable[[], None] = lambda: None) -> T:
        """Waits for a coroutine's result; not to be called in the loop itself. Raises what it raises.

        `beat` is called before, and each half second meanwhile. What it raises cancels the work and comes out of here,
        once the work has ended or a few seconds are over.
        """
        try:
            beat()
        except BaseException:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        while True:
            try:
                return future.result(BEAT_SECONDS)
            except concurrent.futures.TimeoutError:
                if future.done():
                    return future.result()
            try:
                beat()
            except BaseException:
                future.cancel()
                concurrent.futures.wait([future], END_SECONDS)
                raise

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function in the loop, soon; nobody waits for it."""
        self._running().call_soon_threadsafe(function, *arguments)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._loop = None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return self._loop


KAFKA_LOOP = SideLoop("kafka")
"""For the Kafka requests of this process's task loops."""
