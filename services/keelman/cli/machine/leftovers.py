"""Finds and stops workloads that still run without an agent, by the agent's records of them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from keelman.cli.waiting import until
from keelman.runtime.home import Home
from keelman.runtime.processes import children
from keelman.runtime.processes.children import ChildRecord
from keelman.runtime.processes.process_trees import families, family, kill_all, start_of

STOP_SECONDS = 30.0
POLL_SECONDS = 0.05
ORDER = ("worker/", "spark/", "broker/")  # users first


def living(home: Home) -> list[ChildRecord]:
    """Returns the records of the workloads whose process runs, in the order in which to stop them.

    Includes workloads whose starter was killed before it recorded the process: such a process is found by its mark.
    """
    return [record for _, record in _folders(home) if _lives(record)]


def _folders(home: Home) -> list[tuple[Path, ChildRecord]]:
    folders: list[tuple[Path, ChildRecord]] = []
    for folder in sorted(home.workloads.glob("*")):
        adopted = children.adopt(folder)
        if adopted is not None:
            record, child = adopted
            if child is not None:
                child.release()
            folders.append((folder, record))
    return sorted(folders, key=lambda pair: _rank(pair[1]))


async def stop_workloads(home: Home) -> list[str]:
    """Stops the workloads in their order, and kills processes that do not end or were left behind. Returns the names of
    the stopped workloads."""
    stopped = []
    for folder, record in _folders(home):
        seen = _lives(record)
        if seen:
            stopped.append(record.name)
            _signal(record.pid, signal.SIGTERM)
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await until(lambda record=record: not _lives(record), every=POLL_SECONDS)  # type: ignore[misc]
            except TimeoutError:
                kill_all(family(record.pid))
        await children.sweep(folder, record, seen=seen)
    return stopped


def kill_workloads(home: Home) -> None:
    """Kills every process of every workload at once."""
    for pids in families([r.pid for r in living(home)]).values():
        kill_all(pids)


def _lives(record: ChildRecord) -> bool:
    return record.pid > 0 and start_of(record.pid) == record.start


def _rank(record: ChildRecord) -> tuple[int, str]:
    return next((n for n, prefix in enumerate(ORDER) if record.name.startswith(prefix)), len(ORDER)), record.name


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
