"""Ends what a pytest process leaves behind, also when it is killed or interrupted: `keelman up --detach` outlives it.

A process of its own waits for the end of the pytest process, by a pipe that the kernel closes then, and kills every
process whose environment names the temporary folder of its tests, as that of each process of a home does.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import psutil
import pytest

ROUNDS = 20
_GUARDS: list[subprocess.Popen[bytes]] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    """Starts the guard of a process that runs tests itself; pytest workers have a guard each."""
    config = session.config
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        base = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        _GUARDS.append(guard(str(base)))


def guard(folder: str) -> subprocess.Popen[bytes]:
    """Starts a guard, which lasts until the calling process ends or closes its standard input."""
    command = [sys.executable, __file__, folder]
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env={})


def kill_all_of(folder: str) -> bool:
    """Kills the processes whose environment names the folder; returns whether there were any."""
    found = False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and any(_is_in(folder, value) for value in process.environ().values()):
                found = process.status() != psutil.STATUS_ZOMBIE or found
                process.kill()
    return found


def _is_in(folder: str, value: str) -> bool:
    """Whether a variable names the folder or a path in it, and not one whose name only begins the same."""
    return f"{folder}/" in f"{value}/"


if __name__ == "__main__":
    sys.stdin.buffer.read()
    for _ in range(ROUNDS):  # also what was started meanwhile
        if not kill_all_of(sys.argv[1]):
            break
