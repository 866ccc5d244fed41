"""Ends a pytest process that a test has brought to a stop which Python cannot end.

pytest-timeout ends a test by a signal, whose handler needs the interpreter: a library in C that waits while it holds
the interpreter's lock stops all threads for ever. faulthandler's watchdog is a thread without Python. It writes the
stacks and ends the process, which the run reports as a crash of this test.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator

import pytest

GRACE_SECONDS = 60.0
"""How much longer than pytest-timeout it waits, which ends a test with its reason."""
STACKS = pytest.StashKey[int]()
"""The descriptor of the process's own standard error, which pytest replaces while a test runs."""


def pytest_configure(config: pytest.Config) -> None:
    """Keeps the standard error."""
    config.stash[STACKS] = os.dup(2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watches one test, with its fixtures."""
    marker = item.get_closest_marker("timeout")
    seconds = float(marker.args[0] if marker and marker.args else item.config.getini("timeout") or 0)
    if seconds:
        faulthandler.dump_traceback_later(seconds + GRACE_SECONDS, exit=True, file=item.config.stash[STACKS])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
