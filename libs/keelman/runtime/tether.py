"""Ties a child process to this one: the kernel kills the child when its parent is gone, even after kill -9.

Run as a program it sets the tie and becomes the child (exec). It is a program of its own because Python code between
fork and exec is unsafe in a process with threads.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

PR_SET_PDEATHSIG = 1


def tethered(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` tied to the calling process.

    Start it from a thread that lives as long as the process (the main thread): the kernel watches that thread. On
    systems without the tie (not Linux) the command runs untied.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: int, command: Sequence[str]) -> None:
    """Becomes the command. Ends with SIGKILL's meaning when the parent is gone already."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  (this program starts for every child: nothing it does not need)

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(128 + signal.SIGKILL)
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
