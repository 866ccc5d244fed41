"""Lets plain threads wait for coroutines, in an event loop of the thread's own or in one that all others share.

A copy run's thread drives a loop of its own for its Kafka requests, and only while it waits for something. Two threads
of Python take turns at the interpreter's lock: a hand-over costs 0.2 to 0.3 ms, and two busy threads block each other.
A thread that runs its own loop has neither cost (docs/decisions/0016).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import selectors
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

BEAT_SECONDS = 0.5
END_SECONDS = 5.0
CLOSE_SECONDS = 2.0
LONG_SECONDS = 0.1
"""A loop that did not run for longer than this has to catch up."""
MAX_TURNS = 100

_RESOLVERS = ThreadPoolExecutor(8, "resolver")
"""Threads for the host name lookups of all loops of a process, each of which would start its own otherwise."""


class Signal(Protocol):
    """An event that a coroutine of the loop sets and its thread waits for."""

    def set(self) -> None:
        """Ends the wait; called in the loop."""

    def clear(self) -> None:
        """Forgets that it was set."""

    def wait(self, timeout: float) -> bool:
        """Waits. Returns whether the signal was set, before or within this time."""


class SideLoop:
    """A loop in a thread that starts with the first use and lasts as long as the process; a forked process begins
    again. Thread-safe."""

    def __init__(self, name: str) -> None:
        """`name` is the thread's name."""
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._here = _Here()
        os.register_at_fork(after_in_child=self._forget)

    @contextmanager
    def driven_here(self) -> Iterator[None]:
        """Runs a loop of this thread's own for its calls during the block. Their results may be used in this thread
        only, and make progress only while the thread waits for something in the loop."""
        before = self._here.loop
        self._here.loop = loop = DrivenLoop()
        try:
            yield
        finally:
            self._here.loop = before
            loop.close()

    def call(self, work: Coroutine[Any, Any, T], beat: Callable[[], None] = lambda: None) -> T:
        """Waits for a coroutine and returns its result; not to be called in the loop itself. Raises the coroutine's
        error.

        `beat` is called before, and each half second meanwhile. An error of `beat` cancels the work and is raised here,
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
        """Starts a coroutine without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function in the loop, soon, without waiting for it."""
        if self._here.loop is not None:
            self._here.loop.post(function, *arguments)
        else:
            self._running().call_soon_threadsafe(function, *arguments)

    def do(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function as the loop would: before this returns if the thread drives the loop, else soon."""
        if self._here.loop is not None:
            self._here.loop.do(function, *arguments)
        else:
            self._running().call_soon_threadsafe(function, *arguments)

    def signal(self) -> Signal:
        """Returns a signal for this thread to wait for."""
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


class DrivenLoop:
    """A loop that its creating thread runs while it waits. It is created on first use."""

    def __init__(self) -> None:
        self._loop: _CatchingUpLoop | None = None

    def call(self, work: Coroutine[Any, Any, T], beat: Callable[[], None]) -> T:
        """Runs the loop until the coroutine has ended and returns its result. Raises the coroutine's error.

        `beat` is called before, and each half second meanwhile. An error of `beat` cancels the work and is raised here,
        once the work has ended or a few seconds are over.
        """
        try:
            beat()
        except BaseException:
            work.close()
            raise
        loop = self._made()
        loop.catch_up()  # a connection that was closed meanwhile must not be used again
        task = loop.create_task(work)
        task.add_done_callback(loop.wake)
        try:
            while not loop.run(BEAT_SECONDS, task.done):
                beat()
        except BaseException:
            task.cancel()
            loop.run(END_SECONDS, task.done)
            raise
        return task.result()

    def post(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function in the loop, and lets the loop do all that is possible without waiting."""
        loop = self._made()
        loop.catch_up()  # first, because its clock is set back meanwhile: time limits set then would have passed
        loop.call_soon(function, *arguments)
        loop.run(0, lambda: True)

    def do(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function as the loop would, without a turn of the loop."""
        loop = self._made()
        loop.catch_up()
        asyncio._set_running_loop(loop)
        try:
            function(*arguments)
        finally:
            asyncio._set_running_loop(None)

    def signal(self) -> LoopSignal:
        """Returns a signal that is set in the loop."""
        return LoopSignal(self._made())

    def close(self) -> None:
        """Cancels the remaining tasks of the loop and closes it."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
            task.add_done_callback(loop.wake)
        loop.run(CLOSE_SECONDS, lambda: all(task.done() for task in left))
        loop.run(0, lambda: True)  # connections that were dropped are closed in the next turn
        loop.close()

    def _made(self) -> _CatchingUpLoop:
        if self._loop is None:
            self._loop = _CatchingUpLoop()
        return self._loop


class LoopSignal:
    """Like threading.Event; the waiter runs the loop meanwhile."""

    def __init__(self, loop: _CatchingUpLoop) -> None:
        self._loop = loop
        self._is_set = False

    def set(self) -> None:
        """Sets the signal, in the loop."""
        self._is_set = True
        self._loop.wake()

    def clear(self) -> None:
        """Clears the signal, in the loop's thread."""
        self._is_set = False

    def wait(self, seconds: float) -> bool:
        """Waits. Returns whether the signal was set, before or within this time."""
        return self._loop.run(seconds, lambda: self._is_set)


class _CatchingUpLoop(asyncio.SelectorEventLoop):
    """A loop that, after a pause, reads all that has arrived before its clock advances. Otherwise a thread that was
    busy for longer than a request's time-out would see the time-out before the answer, which arrived long ago."""

    def __init__(self) -> None:
        self._sockets = selectors.DefaultSelector()
        self._clock_stands_at: float | None = None
        self._stop_timer: asyncio.TimerHandle | None = None
        self._stood_since = time.monotonic()
        super().__init__(self._sockets)

    def time(self) -> float:
        """Seconds of the monotonic clock."""
        return super().time() if self._clock_stands_at is None else self._clock_stands_at

    def wake(self, _done: object = None) -> None:
        """Interrupts a running `run`, so that it checks whether it is done."""
        if self.is_running():
            self.stop()

    def run(self, seconds: float, done: Callable[[], bool]) -> bool:
        """Runs until `done`, for `seconds` at most. Returns the last result of `done`. With 0 seconds: a single
        turn."""
        self.catch_up()
        try:
            if seconds <= 0:
                self._turn()
            else:
                self._run_until(self.time() + seconds, done)
        finally:
            self._stood_since = self.time()
        return done()

    def catch_up(self) -> None:
        """Reads all that arrived while the loop did not run, if that was long."""
        if self.time() - self._stood_since <= LONG_SECONDS:
            return
        self._clock_stands_at = self._stood_since
        try:
            for _ in range(MAX_TURNS):
                if not self._sockets.select(0):
                    break
                self._turn()
            for _ in range(2):  # one for the reader of a connection, one for the waiter for the answer
                self._turn()
        finally:
            self._clock_stands_at = None
            self._stood_since = self.time()

    async def getaddrinfo(self, *where: Any, **more: Any) -> Any:
        """Looks a host up like the loop's own method, in threads that all loops share."""
        return await self.run_in_executor(_RESOLVERS, partial(socket.getaddrinfo, *where, **more))

    def _turn(self) -> None:
        self.stop()
        self.run_forever()

    def _run_until(self, deadline: float, done: Callable[[], bool]) -> None:
        while not done() and self.time() < deadline:
            self._stop_by(deadline)
            self.run_forever()

    def _stop_by(self, deadline: float) -> None:
        """Stops the loop at the deadline, or sooner: an earlier wait's timer serves the next wait, too."""
        timer = self._stop_timer
        if timer is not None and timer.when() <= deadline:
            return
        if timer is not None:
            timer.cancel()
        self._stop_timer = self.call_at(deadline, self._stop_due)

    def _stop_due(self) -> None:
        self._stop_timer = None
        self.stop()


KAFKA_LOOP = SideLoop("kafka")
"""For the Kafka requests of this process's copy runs, previews and replays."""
