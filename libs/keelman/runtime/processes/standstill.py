"""Announces that this process is about to stand still, so that nobody takes its silence for its death.

What starts a Java virtual machine holds Python's interpreter from beginning to end: no other thread runs meanwhile, and
on a busy host that takes many seconds. Whoever has promised signs of life for this process registers here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Announcer(Protocol):
    """Who promises signs of life. Called in the thread that stands still."""

    def begin(self, seconds: float) -> None:
        """This process may be silent for so long. Returns when that was said, or could not be."""

    def end(self) -> None:
        """It runs again."""


_announcer: Announcer | None = None


def announce_by(announcer: Announcer) -> None:
    """From now on standstills of this process are this one's to announce."""
    global _announcer  # noqa: PLW0603  a process has one life
    _announcer = announcer


@contextmanager
def standstill(seconds: float) -> Iterator[None]:
    """Around what may keep all threads of this process waiting, for `seconds` at most."""
    announcer = _announcer
    if announcer is None:
        yield
        return
    announcer.begin(seconds)
    try:
        yield
    finally:
        announcer.end()
