"""Runs a process's life (one loop, one stop event, signals, a grace period) and groups of sibling tasks.

Raw task creation stays in this package: services use `Siblings`, `supervise` and `run_process` only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import setproctitle

from keelman.model.errors import KeelmanError
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes import exit_record
from keelman.runtime.processes.stacks import stacks_on_signal

T = TypeVar("T")
log = get_logger()
STRAY = "an awaited task was cancelled although nobody cancelled the waiter"


async def guarded(work: Awaitable[T]) -> T:
    """Awaits `work`. Raises RuntimeError if it was cancelled though this task was not.

    A library may cancel an awaited task. Without this, that would end the waiting task, and all tasks that wait for it.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError(STRAY) from error


async def heeded(work: Awaitable[T]) -> T:
    """Awaits `work`. Raises CancelledError if this task was cancelled meanwhile though the work ran to its end.

    A library that cancels and awaits a task of its own may take our cancellation for that task's: then the waiting task
    would continue, and the task that cancelled it would wait for ever.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    result = await work
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
    return result


async def supervise(*functions: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs all functions concurrently; the first error cancels the rest and is raised as itself, not as a group.

    No TaskGroup: when a task of it fails while it waits for the others, Python before 3.13 counts the waiting task as
    cancelled for good, and a time-out around that raises CancelledError.
    """
    tasks = [asyncio.ensure_future(_begun(function)) for function in functions]
    if not tasks:
        return
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await _end(tasks)
    for task in tasks:
        if task in done:
            task.result()


async def _begun(function: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await guarded(function())


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Siblings:
    """An open group of tasks that end with their block: for tasks that start and end while a service runs.

    A task's error ends the whole block, and so does a stray cancellation of a task. On leaving the block, tasks still
    running are cancelled and awaited. An error of the block itself is raised, whatever the cancelled tasks raise; else
    the first error of a task is raised, also in place of a cancellation from outside. No TaskGroup, for the same reason
    as in `supervise`.
    """

    _owner: asyncio.Task[Any]

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._open = self._interrupted = False
        self._error: BaseException | None = None

    def start(self, work: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """Starts one task in the group. Raises RuntimeError if the group is ending."""
        if not self._open:
            work.close()
            raise RuntimeError("the group of tasks is ending")
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = _error_of(task)
        if error is None or self._error is not None:
            return
        self._error = error
        if self._open:
            self._close()
            self._interrupted = self._owner.cancel()

    def _close(self) -> None:
        self._open = False
        for task in self._tasks:
            task.cancel()

    async def __aenter__(self) -> Siblings:
        owner = asyncio.current_task()
        assert owner is not None
        self._owner, self._open = owner, True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if self._open:  # else the tasks clean up already, and another cancellation would interrupt that
            self._close()
        if self._interrupted:
            self._owner.uncancel()
        cancelled: asyncio.CancelledError | None = None
        while self._tasks:
            try:
                await asyncio.wait(self._tasks)
            except asyncio.CancelledError as again:  # a second cancellation of the block cancels its tasks
                cancelled = again
                self._close()
        if error is not None and not isinstance(error, asyncio.CancelledError):
            return
        if self._error is not None:
            raise self._error
        if cancelled is not None:
            raise cancelled


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    if not task.cancelled():
        return task.exception()
    return None if task.cancelling() else RuntimeError(f"{task.get_name()}: {STRAY}")


async def first_of(*waits: Awaitable[Any]) -> None:
    """Returns when any of the awaitables is done; cancels and awaits the others; raises the done one's error."""
    tasks = [asyncio.ensure_future(w) for w in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if any(task.cancelled() for task in done):  # not by us yet
            raise RuntimeError(STRAY)
    finally:
        await _end(tasks)
    for task in done:
        task.result()


async def wait_or_stop(event: asyncio.Event, seconds: float | None) -> bool:
    """Waits `seconds`, None for ever, or until the event is set. Returns whether it was set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


@contextlib.asynccontextmanager
async def deadline(seconds: float, error: KeelmanError | Callable[[], KeelmanError]) -> AsyncIterator[None]:
    """Raises `error` if the block takes longer: created then, so that it can tell how far the block has come.

    A TimeoutError of the block itself passes through.
    """
    try:
        async with asyncio.timeout(seconds) as scope:
            yield
    except TimeoutError:
        if scope.expired():
            raise (error() if callable(error) else error) from None
        raise


def run_process(
    title: str, body: Callable[[asyncio.Event], Coroutine[Any, Any, None]], *, grace_seconds: float = 30.0
) -> int:
    """Runs a service's whole life and returns the process's exit code.

    The first SIGTERM or SIGINT sets the stop event; a second one, or the end of the grace period, cancels the body. 0:
    ended as asked. 1: a KeelmanError (one line on stderr) or a crash (a trace). 3: had to be cut. Leaves an exit record
    if the starter of this process requested one.
    """
    # Without this the title overwrites the environment, by which other processes find this one's owner.
    os.environ.setdefault("SPT_NOENV", "1")
    setproctitle.setproctitle(title)
    stacks_on_signal()
    record = exit_record.take_path()
    try:
        code = asyncio.run(_life(body, grace_seconds))
    except KeelmanError as error:
        print(f"{title}: {error.message}", file=sys.stderr)
        exit_record.write(record, 1, reason=error.reason, message=error.message)
        return 1
    except KeyboardInterrupt:
        code = 3
    except BaseException as error:
        exit_record.write(record, 1, reason="CRASHED", message=f"{type(error).__name__}: {error}")
        raise
    exit_record.write(record, code)
    return code


async def _life(body: Callable[[asyncio.Event], Coroutine[Any, Any, None]], grace_seconds: float) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    main = asyncio.ensure_future(body(stop))

    def on_signal(number: int) -> None:
        if stop.is_set():
            main.cancel()
            return
        log.info("stopping", signal=signal.Signals(number).name, pid=os.getpid())
        stop.set()
        loop.call_later(grace_seconds, main.cancel)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    try:
        await main
    except asyncio.CancelledError as error:
        if not main.cancelling():
            raise RuntimeError(STRAY) from error
        log.warning("cut", grace_seconds=grace_seconds)
        return 3
    return 0
