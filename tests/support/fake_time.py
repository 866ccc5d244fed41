"""An event loop on fake time: nothing waits for real, and the clock jumps to the next due time.

The code that runs on it is the real one; a run is the same each time, since there is no other clock, thread or socket.
Tasks belong to processes, which can be frozen, resumed, and killed at once, as by kill -9: a killed process runs
nothing more, not even its `finally` blocks.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from asyncio.events import _set_running_loop
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_PROCESS: contextvars.ContextVar[FakeProcess | None] = contextvars.ContextVar("fake process", default=None)


class FakeProcess:
    """Some tasks of a loop, and all tasks that these start, as if they were a process of their own."""

    def __init__(self, loop: FakeTimeLoop, name: str) -> None:
        self.name = name
        self.is_dead = self.is_frozen = False
        self._loop = loop
        self._held: list[asyncio.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        """References to all tasks, also of a dead process: a garbage-collected task would run its `finally` blocks."""
        loop.processes.append(self)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts a task of this process."""
        context = contextvars.copy_context()
        context.run(_PROCESS.set, self)
        task = self._loop.create_task(work, context=context)
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(task)
        return task

    def freeze(self) -> None:
        """Stops the process until `thaw`; work that becomes due meanwhile runs then, in its order."""
        self.is_frozen = True

    def thaw(self) -> None:
        """Resumes the process."""
        self.is_frozen = False
        held, self._held = self._held, []
        self._loop.again(held)

    def die(self) -> None:
        """Ends the process: nothing of it ever runs again."""
        self.is_dead = True
        self._held.clear()

    def holds(self, handle: asyncio.Handle) -> bool:
        """Whether a due handle must not run now, because its process is dead or frozen. Called by the loop."""
        if self.is_dead:
            return True
        if self.is_frozen:
            self._held.append(handle)
        return self.is_frozen


def own_process() -> FakeProcess | None:
    """The process of the current task; None for a task without a process."""
    return _PROCESS.get()


class FakeTimeLoop(asyncio.AbstractEventLoop):
    """The loop. A call that would block a real loop, such as one in a thread, is done in place and takes no time."""

    def __init__(self) -> None:
        self.problems: list[dict[str, Any]] = []
        """The errors that a real loop would have logged: of callbacks, and of tasks that were never awaited."""
        self.processes: list[FakeProcess] = []
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._count = itertools.count()

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def run(self, work: Coroutine[Any, Any, T], *, most_seconds: float) -> T:
        """Runs until the work has ended and returns its result.

        Raises RuntimeError when nothing more is due, and TimeoutError when the loop's time reaches `most_seconds`
        first.
        """
        _set_running_loop(self)
        try:
            task: asyncio.Task[T] = self.create_task(work)
            while not task.done():
                self._step(most_seconds)
            return task.result()
        finally:
            _set_running_loop(None)

    def again(self, handles: list[asyncio.Handle]) -> None:
        """Schedules the handles that were held back before all other due handles."""
        self._ready.extendleft(reversed(handles))

    def _step(self, most_seconds: float) -> None:
        if not self._ready:
            self._to_next_timer(most_seconds)
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        process = handle._context.get(_PROCESS)  # type: ignore[attr-defined]
        if process is None or not process.holds(handle):
            handle._run()

    def _to_next_timer(self, most_seconds: float) -> None:
        while self._timers:
            when, _, timer = heapq.heappop(self._timers)
            if timer.cancelled():
                continue
            self._now = max(self._now, when)
            if self._now > most_seconds:
                raise TimeoutError(f"not done after {most_seconds:g} s of fake time")
            self._ready.append(timer)
            return
        raise RuntimeError("nothing is due any more: all wait for each other")

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """As in any loop."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        """As in any loop; there are no threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """As in any loop."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        """As in any loop. Callbacks due at the same time run in the order in which they were scheduled."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._count), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Nothing to do: a cancelled timer is skipped when it is due."""

    def create_future(self) -> asyncio.Future[Any]:
        """As in any loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: str | None = None, context: Any = None) -> asyncio.Task[Any]:
        """As in any loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Calls it in place."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keeps the problem."""
        self.problems.append(context)

    def get_debug(self) -> bool:
        """Never."""
        return False

    def is_running(self) -> bool:
        """Always true: only running code can call it."""
        return True

    def is_closed(self) -> bool:
        """Never: there is nothing to close."""
        return False
