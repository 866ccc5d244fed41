"""An event loop that the thread which owns it runs while it waits for something, and at no other time.

Two threads of Python take turns at the interpreter's lock: a hand-over from one to the other costs 0.2 to 0.3 ms, and
two that are both busy keep each other from it. A thread that runs its own loop has neither (docs/decisions/0016).
"""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

BEAT_SECONDS = 0.5
END_SECONDS = 5.0
CLOSE_SECONDS = 2.0
LONG_SECONDS = 0.1
"""A loop that stood for longer has something to catch up with."""
MAX_TURNS = 100

_RESOLVERS = ThreadPoolExecutor(8, "resolver")
"""Look up host names for all loops of a process, which would start threads for it each."""


class DrivenLoop:
    """Used in the thread that made it. Begins nothing until it is first needed."""

    def __init__(self) -> None:
        self._loop: _CatchingUpLoop | None = None

    def call(self, work: Coroutine[Any, Any, T], beat: Callable[[], None]) -> T:
        """Runs the loop until the coroutine has its result. Raises what it raises.

        `beat` is called before, and each half second meanwhile. What it raises cancels the work and comes out of here,
        once the work has ended or a few seconds are over.
        """
        try:
            beat()
        except BaseException:
            work.close()
            raise
        loop = self._made()
        loop.catch_up()  # a connection that was closed meanwhile is not to be used again
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
        """Calls a function in the loop, and lets the loop do what it can without waiting."""
        loop = self._made()
        loop.call_soon(function, *arguments)
        loop.run(0, lambda: True)

    def signal(self) -> LoopSignal:
        """One that is set in the loop."""
        return LoopSignal(self._made())

    def close(self) -> None:
        """Cancels what is left in the loop and closes it."""
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
    """Like threading.Event; whoever waits runs the loop meanwhile."""

    def __init__(self, loop: _CatchingUpLoop) -> None:
        self._loop = loop
        self._is_set = False

    def set(self) -> None:
        """In the loop."""
        self._is_set = True
        self._loop.wake()

    def clear(self) -> None:
        """In the loop's thread."""
        self._is_set = False

    def wait(self, seconds: float) -> bool:
        """Whether it was set, by now or within so many seconds."""
        return self._loop.run(seconds, lambda: self._is_set)


class _CatchingUpLoop(asyncio.SelectorEventLoop):
    """After it has stood, it reads what has come meanwhile before its clock goes on. Else a thread that was busy for
    longer than a request's time-out would find that due before it has read the answer, which came long ago."""

    def __init__(self) -> None:
        self._sockets = selectors.DefaultSelector()
        self._clock_stands_at: float | None = None
        self._stood_since = time.monotonic()
        super().__init__(self._sockets)

    def time(self) -> float:
        """Seconds of the monotonic clock."""
        return super().time() if self._clock_stands_at is None else self._clock_stands_at

    def wake(self, _done: object = None) -> None:
        """Ends a `run` that is under way, to look whether it is done."""
        if self.is_running():
            self.stop()

    def run(self, seconds: float, done: Callable[[], bool]) -> bool:
        """Runs until `done`, for so many seconds at most; what `done` says then. With 0 seconds: a single turn."""
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
        """Reads what has come while the loop stood, where that was long."""
        if self.time() - self._stood_since <= LONG_SECONDS:
            return
        self._clock_stands_at = self._stood_since
        try:
            for _ in range(MAX_TURNS):
                if not self._sockets.select(0):
                    break
                self._turn()
            for _ in range(2):  # to who reads a connection, and from there to who waits for the answer
                self._turn()
        finally:
            self._clock_stands_at = None
            self._stood_since = self.time()

    async def getaddrinfo(self, *where: Any, **more: Any) -> Any:
        """As the loop's own, in threads that all loops share."""
        return await self.run_in_executor(_RESOLVERS, partial(socket.getaddrinfo, *where, **more))

    def _turn(self) -> None:
        self.stop()
        self.run_forever()

    def _run_until(self, deadline: float, done: Callable[[], bool]) -> None:
        timer = self.call_at(deadline, self.stop)
        while not done() and self.time() < deadline:
            self.run_forever()
        timer.cancel()
