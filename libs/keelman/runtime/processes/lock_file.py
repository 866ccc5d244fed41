"""Locks a file for as long as this process has it open: the kernel lets go of it whatever ends the process."""

from __future__ import annotations

import fcntl
import os
from typing import IO


def take_lock(file: IO[str], text: str = "") -> str:
    """Locks a file that is open to be read and written, and writes into it who has it: the process id, or `text`.

    Returns an empty text; where another process has it, what that one wrote.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        return file.read().strip() or "unknown"
    file.truncate(0)
    file.write(text or str(os.getpid()))
    file.flush()
    return ""
