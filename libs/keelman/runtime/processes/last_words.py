"""Runs a command when the process that started it has ended without revoking that, even by kill -9.

Run as a program it reads lines and, at the end of its input, becomes the command (exec), with the last whole line as
the command's input; if that line is empty it ends. Only the process that started it has the other end of the input. It
imports next to nothing: it takes some 8 MiB for as long as that process lives.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

END_SECONDS = 2.0
# A service manager ends all processes of a service once its main one has died: this program has to run just then.
PASSED_OVER = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class LastWords:
    """Holds the program; its output goes where this process's does. It has a session of its own: signals to this
    process's group do not reach it."""

    def __init__(self, command: Sequence[str]) -> None:
        """Starts the program, with nothing to run yet. Raises OSError."""
        self._line = b""
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, *command], stdin=subprocess.PIPE, bufsize=0, start_new_session=True
        )

    def change(self, line: bytes) -> None:
        """Sets the command's input from now on, without a line end; empty if it must not run. Raises OSError."""
        self._line = line
        assert self._child.stdin is not None
        self._child.stdin.write(line + b"\n")

    def close(self) -> None:
        """Releases the program: the command runs now if it has input, else the program ends."""
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        if not self._line:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(END_SECONDS)


def main(command: Sequence[str]) -> None:
    """Waits for the end of its input and becomes the command, or ends."""
    for number in PASSED_OVER:
        signal.signal(number, signal.SIG_IGN)
    last = b""
    for line in sys.stdin.buffer:
        if line.endswith(b"\n"):
            last = line
    if not last.strip():
        return
    reading_end, giving = os.pipe()
    if os.fork():
        os.dup2(reading_end, 0)
        os.close(giving)
        os.execv(command[0], list(command))
    os.close(reading_end)
    with open(giving, "wb") as stream:
        stream.write(last)


if __name__ == "__main__":
    main(sys.argv[1:])
