"""Measures the use and the free resources of this host, for each heartbeat: some tenths of a millisecond."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from keelman.api.node.v1.node_pb2 import NodeFigures
from keelman.runtime.java.installation import JavaMissing, find, released

MAX_FILES = 1 << 20
SHORTEST_SECONDS = 0.05  # the kernel counts in hundredths of a second


class Figures:
    """Processors in use are those since the figures before; the first ones are since this was made."""

    def __init__(
        self, home: Path, *, clock: Callable[[], float] = time.monotonic, busy: Callable[[], float] | None = None
    ) -> None:
        self._home = home
        self._clock = clock
        self._busy = busy or busy_seconds
        self._before = (clock(), self._busy())
        self._used = 0.0
        self._java = _java_version()

    def take(self) -> NodeFigures:
        """Returns the present figures. Unreadable ones are 0."""
        return NodeFigures(
            cpus_used=self._cpus_used(),
            memory_available_bytes=psutil.virtual_memory().available,
            disk_free_bytes=_disk_free(self._home),
            load=_load(),
            open_files_limit=_open_files_limit(),
            clock_ms=time.time_ns() // 1_000_000,
            python_version=platform.python_version(),
            java_version=self._java,
        )

    def _cpus_used(self) -> float:
        now, (then, busy_then) = self._clock(), self._before
        if now - then >= SHORTEST_SECONDS:
            busy = self._busy()
            self._used = max(0.0, (busy - busy_then) / (now - then))  # a host's counters may go back
            self._before = (now, busy)
        return round(self._used, 2)


def busy_seconds() -> float:
    """Returns the seconds for which all processors of the host together have worked since it started."""
    times = psutil.cpu_times()
    working = ("user", "nice", "system", "irq", "softirq", "steal")
    return float(sum(getattr(times, name, 0.0) for name in working))


def _disk_free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _open_files_limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_FILES if limit == resource.RLIM_INFINITY else limit


def _java_version() -> str:
    try:
        return find(ask=released).version
    except JavaMissing:
        return ""


def _load() -> float:
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return 0.0
