"""Waits for a condition, and shows the progress to people."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

POLL_SECONDS = 0.1


async def until(condition: Callable[[], bool | Awaitable[bool]], *, every: float = POLL_SECONDS) -> None:
    """Returns when the condition is true. Bound it with asyncio.timeout or runtime.supervise.deadline."""
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return
        await asyncio.sleep(every)


class Line:
    """One line of progress on stderr: rewritten in place on a terminal, printed once for each new text elsewhere."""

    def __init__(self, status: Any = None) -> None:
        self._status = status
        self._last = ""

    def show(self, text: str) -> None:
        """Shows the present action or wait."""
        if text == self._last:
            return
        self._last = text
        if self._status is not None:
            self._status.update(_escape(text))
            self._status.start()
        else:
            print(text, file=sys.stderr, flush=True)

    def print(self, text: str) -> None:
        """Prints a line that stays."""
        if self._status is not None:
            self._status.console.print(_escape(text))
        else:
            print(text, file=sys.stderr, flush=True)

    def pause(self) -> None:
        """Stops the display until the next `show`, so that others can use the terminal."""
        if self._status is not None:
            self._status.stop()


@contextmanager
def progress_line(first: str = "") -> Iterator[Line]:
    """Yields a line of progress for the duration of the block."""
    if not sys.stderr.isatty():
        line = Line()
        if first:
            line.show(first)
        yield line
        return
    from rich.console import Console  # noqa: PLC0415

    with Console(stderr=True, highlight=False).status(_escape(first)) as status:
        yield Line(status)


def _escape(text: str) -> str:
    from rich.markup import escape  # noqa: PLC0415

    return escape(text)
