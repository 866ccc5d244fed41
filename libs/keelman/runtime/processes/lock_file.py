"""Locks a file for as long as this process has it open: the kernel releases it however the process ends."""

from __future__ import annotations

import fcntl
import os
from typing import IO


def take_lock(file: IO[str], text: str = "") -> str:
    """Locks a file that is open for reading and writing, and writes its holder into it: the process id, or `text`.

    Returns an empty text; if another process holds it, that process's text.
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
