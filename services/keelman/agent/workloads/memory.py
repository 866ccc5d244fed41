"""Measures how much memory workloads use with all that they start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

import psutil

from keelman.runtime.processes.process_trees import families

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def over(limits: Mapping[int, int]) -> dict[int, int]:
    """Returns the bytes of those session leaders' families that use more than their limit; work for a thread.

    Resident sets, which are quickly read, are no less than the real use: only where they are over the limit the pages
    that processes share are told apart.
    """
    exceeding = {}
    for leader, pids in families(limits).items():
        if sum(map(_resident, pids)) > limits[leader] and (used := sum(map(_bytes, pids))) > limits[leader]:
            exceeding[leader] = used
    return exceeding


def tree_bytes(leaders: Sequence[int]) -> dict[int, int]:
    """Returns the bytes of each session leader's whole family; takes tens of milliseconds: work for a thread.

    The sum of proportional set sizes (a page that n processes share counts as 1/n for each), so that forked Python
    processes are not counted many times over; resident set sizes where the system does not give the former.
    """
    return {leader: sum(map(_bytes, pids)) for leader, pids in families(leaders).items()}


def _bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return _of_psutil(pid)


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * PAGE_BYTES
    except OSError:
        return _of_psutil(pid)


def _of_psutil(pid: int) -> int:
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0
