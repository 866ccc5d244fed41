"""An event loop that the thread which owns it runs while it waits for something, and at no other time.

Two threads of Python take turns at the interpreter's lock: a hand-over from one to the other costs 0.2 to 0.3 ms, and
two that are both busy keep each other from it. A thread that runs its own loop has neither (docs/decisions/0016).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

BEAT_SECONDS = 0.5
END_SECONDS = 5.0
CLOSE_SECONDS = 2.0
LONG_SECONDS = 1.0
"""A loop that stood for longer first looks which connections were closed meanwhile."""

_RESOLVERS = ThreadPoolExecutor(8, "resolver")
"""Look up host names for all loops of a process, which would start threads for it each."""


class DrivenLoop:
    """Used in the thread that made it. Begins nothing until it is first needed."""

    def __init__(self) -> None:
        self._loop: _StandingClockLoop | None = None

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
        loop.catch_up()
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

    def _made(self) -> _StandingClockLoop:
        if self._loop is None:
            self._loop = _StandingClockLoop()
        return self._loop


class LoopSignal:
    """Like threading.Event; whoever waits runs the loop meanwhile."""

    def __init__(self, loop: _StandingClockLoop) -> None:
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


class _StandingClockLoop(asyncio.SelectorEventLoop):
    """Its clock stands still while nobody runs it. Else a thread that was busy for longer than a request's time-out
    would find the time-out due before it has read the answer, which came long ago."""

    def __init__(self) -> None:
        self._stood_seconds = 0.0
        self._stands_since: float | None = None
        super().__init__()
        self._stands_since = super().time()

    def time(self) -> float:
        """Seconds in which the loop ran."""
        now = super().time() if self._stands_since is None else self._stands_since
        return now - self._stood_seconds

    def wake(self, _done: object = None) -> None:
        """Ends a `run` that is under way, to look whether it is done."""
        if self.is_running():
            self.stop()

    def catch_up(self) -> None:
        """Takes note of what has happened on the connections since the loop stood, where that is long."""
        if self._stands_since is not None and super().time() - self._stands_since > LONG_SECONDS:
            for _ in range(2):  # what the socket says comes to who reads the connection in the next turn
                self.run(0, lambda: True)

    def run(self, seconds: float, done: Callable[[], bool]) -> bool:
        """Runs until `done`, for so many seconds at most; what `done` says then. With 0 seconds: a single turn."""
        if self._stands_since is not None:
            self._stood_seconds += super().time() - self._stands_since
            self._stands_since = None
        try:
            if seconds <= 0:
                self.stop()
                self.run_forever()
            else:
                self._run_until(self.time() + seconds, done)
        finally:
            self._stands_since = super().time()
        return done()

    async def getaddrinfo(self, *where: Any, **more: Any) -> Any:
        """As the loop's own, in threads that all loops share."""
        return await self.run_in_executor(_RESOLVERS, partial(socket.getaddrinfo, *where, **more))

    def _run_until(self, deadline: float, done: Callable[[], bool]) -> None:
        timer = self.call_at(deadline, self.stop)
        while not done() and self.time() < deadline:
            self.run_forever()
        timer.cancel()
