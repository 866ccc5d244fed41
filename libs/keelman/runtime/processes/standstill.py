"""Announces that this process is about to pause, so that its silence is not taken for its death.

Starting a Java virtual machine holds Python's interpreter lock throughout: no other thread runs meanwhile, and on a
busy host that takes many seconds. Code that has promised signs of life for this process registers here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Announcer(Protocol):
    """Code that has promised signs of life. Called in the thread that pauses."""

    def begin(self, seconds: float) -> None:
        """Announces that this process may be silent for `seconds`. Returns when that was sent, or could not be."""

    def end(self) -> None:
        """Announces that the process runs again."""


_announcer: Announcer | None = None


def announce_by(announcer: Announcer) -> None:
    """Has this announcer announce the standstills of this process from now on."""
    global _announcer  # noqa: PLW0603  a process has one life
    _announcer = announcer


@contextmanager
def standstill(seconds: float) -> Iterator[None]:
    """Announces a standstill around code that may block all threads of this process, for `seconds` at most."""
    announcer = _announcer
    if announcer is None:
        yield
        return
    announcer.begin(seconds)
    try:
        yield
    finally:
        announcer.end()
