"""Spark's Python daemon, with all that slots import loaded before it forks: slots start sooner and share that memory.

Started by Spark as `python -m keelman.engine.slot.daemon pyspark.worker` (setting spark.python.daemon.module).
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from keelman.engine.slot import ending
from keelman.engine.slot.ending import leave_end
from keelman.runtime.processes.die_with_parent import keep

ALWAYS = (
    "asyncio",
    "pyspark.worker",
    "pyspark.cloudpickle",
    "pyspark.sql.pandas.types",
    "pyspark.sql.pandas.serializers",
    "pyarrow",
    "keelman.engine.slot.host",
)


def preload(modules: tuple[str, ...]) -> None:
    """Imports all modules that can be imported; a slot that needs a missing module reports it itself."""
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"slot daemon: {name} is not preloaded: {error}", file=sys.stderr)
    # Objects that are never collected are never touched, so their pages stay shared.
    gc.collect()
    gc.freeze()
    # A sink's messages come by the thousand and none is part of a cycle: looked for after each 700 new objects, as by
    # default, cycles cost a third of the time to consume.
    gc.set_threshold(50_000, 20, 50)


def threads() -> int:
    """Threads of this process; 1 is the only number that is safe to fork with."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1


def keep_children() -> None:
    """Gives each slot forked by this daemon a reaper: all processes that the slot has started end with it, and with
    this daemon, even after kill -9. Processes that a slot forks belong to its reaper."""
    if sys.platform != "linux":
        return
    daemon, keeps = os.getpid(), False

    def forked() -> None:
        nonlocal keeps
        if not keeps:
            keeps = True
            keep(daemon, partial(leave_end, ending.shared_call()))

    os.register_at_fork(after_in_child=forked)


def hushed(work: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """PySpark's work of one forked process, without a trace when Spark has hung up: the job was cancelled early."""

    def run(connection: Any, authenticated: bool) -> int:
        try:
            return work(connection, authenticated)
        except ConnectionError:
            return 1

    return run


class Uncut:
    """The pipe that Spark gives rows through, which raises where it ends early.

    For Arrow an end between two batches is the end of the stream, and a part of a data set would be taken for read. A
    stream that Spark has ended in order has an end mark after the last batch, and no reader reads beyond that.
    """

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Like a file's. Raises EOFError."""
        data: bytes = self._file.read(size)
        if size and not data:
            raise EOFError("Spark has hung up")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def main() -> None:
    """Preloads, then serves Spark's requests for processes until Spark closes its standard input."""
    from pyspark import daemon, worker  # noqa: PLC0415  (pyspark only where slots run)

    preload((*ALWAYS, *filter(None, os.environ.get("KEELMAN_SLOT_PRELOAD", "").split(","))))
    if (count := threads()) > 1:
        print(f"slot daemon: {count} threads after the preload, forks may hang", file=sys.stderr)
    keep_children()
    work = worker.main
    worker.main = lambda infile, outfile: work(Uncut(infile), outfile)
    daemon.worker = hushed(daemon.worker)
    daemon.manager()


if __name__ == "__main__":
    main()
