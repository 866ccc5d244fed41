"""Slows down a process that writes too much: third-party code that floods its output fills no disk and stops nobody."""

from __future__ import annotations

import faulthandler
import functools
import os
import resource
import threading
import time

from keelman.runtime.processes.stacks import stacks_on_signal

BYTES_PER_SECOND = 256 << 10
CHUNK_BYTES = 64 << 10


def brake_output(bytes_per_second: int = BYTES_PER_SECOND) -> None:
    """From now on standard output and error of this process go to its standard error at this rate at most.

    Faster writers wait. Called once, early, in a process that third-party code runs in.
    """
    real = os.dup(2)
    source, sink = os.pipe()
    for number in (1, 2):
        os.dup2(sink, number)
    os.close(sink)
    faulthandler.enable(real)  # what a crash leaves must not stay in the pipe
    stacks_on_signal(real)
    threading.Thread(target=_pump, args=(source, real, bytes_per_second), name="output", daemon=True).start()


def bound_memory(size: int) -> None:
    """No more memory than this for data in this process beside what it has set aside when this is first called:
    MemoryError beyond it. 0 and less change nothing."""
    if size <= 0:
        return
    size += _set_aside_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


@functools.cache
def _set_aside_bytes() -> int:
    """What counts as data in this process: above all the room that allocators have reserved and not used, and threads'
    stacks. 0 where that is not known."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:
        return 0


def _pump(source: int, real: int, rate: int) -> None:
    free_at = time.monotonic()
    while chunk := os.read(source, CHUNK_BYTES):
        # A second's worth goes at once: only a flood is slowed down.
        free_at = max(free_at, time.monotonic() - 1.0) + len(chunk) / rate
        try:
            while chunk:
                chunk = chunk[os.write(real, chunk) :]
        except OSError:  # nobody takes it any more
            chunk = b""
        time.sleep(max(0.0, free_at - time.monotonic()))
