"""Reads the lines that C libraries write to standard error, so that some of them become log events."""

from __future__ import annotations

import atexit
import contextlib
import contextvars
import faulthandler
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator

TICK_SECONDS, TICKS_SECONDS = 0.1, 2.0
"""How often the takers of a line are called after it, and for how long."""
CHUNK_BYTES = 64 << 10
CLOSE_SECONDS = 1.0
Taker = Callable[[str], bool]
"""Gets each line. Returns True if it has taken the line, which is then not printed."""
Tick = Callable[[], None]


class NativeLines:
    """Reads the process's standard error after `begin`; lines that no taker takes are printed unchanged. Python's own
    writes to sys.stderr bypass it."""

    def __init__(self) -> None:
        self._takers: list[tuple[Taker, Tick]] = []
        self._thread: threading.Thread | None = None
        self._real = 2

    def begin(self) -> None:
        """Reads standard error from now on. Called once, by the main of a process, before the first log line."""
        self._real = os.dup(2)
        source, sink = os.pipe()
        sys.stderr = open(self._real, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.dup2(sink, 2)
        os.close(sink)
        faulthandler.enable(self._real)  # a crash's output must not stay in the pipe
        self._thread = threading.Thread(target=self._run, args=(source,), name="native-lines", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    @contextlib.contextmanager
    def give_to(self, taker: Taker, tick: Tick) -> Iterator[None]:
        """Gives lines to `taker` during the block, and calls `tick` after each and for a while, both in a thread of
        their own, with the log fields that are bound here."""
        context = contextvars.copy_context()
        callbacks: tuple[Taker, Tick] = (lambda line: context.run(taker, line)), (lambda: context.run(tick))
        self._takers.append(callbacks)
        try:
            yield
        finally:
            self._takers.remove(callbacks)

    def _run(self, source: int) -> None:
        try:
            self._pump(source)
        finally:  # no writer waits for room in a pipe without a reader
            os.dup2(self._real, 2)
            os.close(source)

    def _pump(self, source: int) -> None:
        rest, ticks_until = b"", 0.0
        while True:
            waits = bool(rest) or time.monotonic() < ticks_until
            if select.select([source], [], [], TICK_SECONDS if waits else None)[0]:
                chunk = os.read(source, CHUNK_BYTES)
                *lines, rest = (rest + chunk).split(b"\n")
                remaining = [line for line in lines if not self._is_taken(line.decode(errors="replace"))]
                if len(remaining) < len(lines):
                    ticks_until = time.monotonic() + TICKS_SECONDS
                self._print(b"".join(line + b"\n" for line in remaining))
                if not chunk:
                    self._print(rest)
                    return
            elif rest:  # a line whose end does not come
                self._print(rest)
                rest = b""
            for _, tick in tuple(self._takers):
                tick()

    def _is_taken(self, line: str) -> bool:
        return any(taker(line) for taker, _ in tuple(self._takers))

    def _print(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # its reader is gone
            while data:
                data = data[os.write(self._real, data) :]

    def _end(self) -> None:
        """Prints the rest of the pipe before the process ends."""
        os.dup2(self._real, 2)
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)


NATIVE = NativeLines()
