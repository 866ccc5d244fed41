"""Slows down a process that writes too much: third-party code that floods its output neither fills the disk nor stops
other processes."""

from __future__ import annotations

import faulthandler
import functools
import os
import resource
import threading
import time
from collections.abc import Callable

from keelman.runtime.processes.stacks import stacks_on_signal

BYTES_PER_SECOND = 256 << 10
CHUNK_BYTES = 64 << 10
WINDOW_SECONDS, FLOODED = 2.0, 0.8
"""A process that writes this share of the allowed rate during this window is slowed down; a line reports that each
SAY_SECONDS at most."""
SAY_SECONDS = 60.0


def brake_output(bytes_per_second: int = BYTES_PER_SECOND, who: Callable[[], str] = lambda: "") -> None:
    """Limits the rate at which this process's standard output and error go to its standard error from now on.

    Faster writers wait, which a line reports; `who` names the code that runs in the process then, for that line. Called
    once, early, in a process that runs third-party code.
    """
    real = os.dup(2)
    source, sink = os.pipe()
    for number in (1, 2):
        os.dup2(sink, number)
    os.close(sink)
    faulthandler.enable(real)  # a crash's output must not stay in the pipe
    stacks_on_signal(real)
    threading.Thread(target=_pump, args=(source, real, bytes_per_second, who), name="output", daemon=True).start()


def bound_memory(size: int) -> None:
    """Limits this process's data to this size, beside the memory set aside when this is first called: more raises
    MemoryError. 0 and less change nothing."""
    if size <= 0:
        return
    size += _set_aside_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


@functools.cache
def _set_aside_bytes() -> int:
    """Returns the bytes that count as data in this process: mostly memory that allocators have reserved and not used,
    and threads' stacks. 0 if that is unknown."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[5]) * resource.getpagesize()
    except OSError:
        return 0


def _pump(source: int, real: int, rate: int, who: Callable[[], str]) -> None:
    free_at = window = time.monotonic()
    say_at, much = 0.0, 0
    while chunk := os.read(source, CHUNK_BYTES):
        # A second's worth goes at once: only a flood is slowed down.
        now = time.monotonic()
        free_at = max(free_at, now - 1.0) + len(chunk) / rate
        if now - window > WINDOW_SECONDS:
            window, much = now, 0
        much += len(chunk)
        if much > FLOODED * WINDOW_SECONDS * rate and now >= say_at:
            say_at = now + SAY_SECONDS
            begun, _, rest = chunk.partition(b"\n")  # in the middle of a line, if there is one
            text = (
                f"{who() or 'this process'} writes more than its output takes, {rate} bytes a second: it is held back\n"
            )
            chunk = b"\n".join((begun, text.encode() + rest))
        try:
            while chunk:
                chunk = chunk[os.write(real, chunk) :]
        except OSError:  # its reader is gone
            chunk = b""
        time.sleep(max(0.0, free_at - time.monotonic()))
