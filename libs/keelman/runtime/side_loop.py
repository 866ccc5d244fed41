"""An event loop for plain threads that wait for what coroutines do: the thread's own, or one beside all of them.

A copy run's thread drives a loop of its own for its Kafka requests; threads without one share a loop in a further one.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from keelman.runtime.driven_loop import BEAT_SECONDS, END_SECONDS, DrivenLoop

T = TypeVar("T")


class Signal(Protocol):
    """What a coroutine of the loop sets and its thread waits for."""

    def set(self) -> None:
        """Ends the wait; called in the loop."""

    def clear(self) -> None:
        """Forgets that it was set."""

    def wait(self, timeout: float) -> bool:
        """Whether it was set, by now or within so many seconds."""


class SideLoop:
    """Thread-safe. The thread starts with the first use and lasts as long as the process; a forked one begins again."""

    def __init__(self, name: str) -> None:
        """`name` is the thread's."""
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._here = _Here()
        os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def driven_here(self) -> Iterator[None]:
        """In this block the calls of this thread run a loop of its own. What they begin is to be used in this thread
        only, and goes on only while the thread waits for something in the loop."""
        before = self._here.loop
        self._here.loop = loop = DrivenLoop()
        try:
            yield
        finally:
            self._here.loop = before
            loop.close()

    def call(self, work: Coroutine[Any, Any, T], beat: Callable[[], None] = lambda: None) -> T:
        """Waits for a coroutine's result; not to be called in the loop itself. Raises what it raises.

        `beat` is called before, and each half second meanwhile. What it raises cancels the work and comes out of here,
        once the work has ended or a few seconds are over.
        """
        if self._here.loop is not None:
            return self._here.loop.call(work, beat)
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

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Begins a coroutine that nobody has to wait for."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function in the loop, soon; nobody waits for it."""
        if self._here.loop is not None:
            self._here.loop.post(function, *arguments)
        else:
            self._running().call_soon_threadsafe(function, *arguments)

    def signal(self) -> Signal:
        """One for this thread to wait for."""
        return threading.Event() if self._here.loop is None else self._here.loop.signal()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._loop = None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True).start()
            return self._loop


class _Here(threading.local):
    loop: DrivenLoop | None = None


KAFKA_LOOP = SideLoop("kafka")
"""For the Kafka requests of this process's copy runs, previews and replays."""
