"""Runs one call that may hang, such as a connector's, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T]) -> tuple[threading.Thread, asyncio.Future[T]]:
    """Runs a function in a thread of its own: if it hangs, it blocks neither another nor the end of the process."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(lambda: None if answer.done() else set_it())

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            problem = error
            settle(lambda: answer.set_exception(problem))
        else:
            settle(lambda: answer.set_result(result))

    thread = threading.Thread(target=run, name="connector", daemon=True)
    thread.start()
    return thread, answer
