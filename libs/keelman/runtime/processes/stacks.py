"""Writes a process's stacks on a signal, to see where it hangs."""

from __future__ import annotations

import faulthandler
import signal


def stacks_on_signal(file: int = 2) -> None:
    """Has SIGUSR1 write the stack of every thread to this file from now on, standard error by default.

    Called at the start of each process of ours; without it the signal ends the process.
    """
    faulthandler.register(signal.SIGUSR1, file=file, all_threads=True)
