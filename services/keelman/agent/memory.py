"""Memory of a process and all its children."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import psutil

from keelman.runtime.processes.process_trees import families


def tree_bytes(leaders: Sequence[int]) -> dict[int, int]:
    """Bytes of each session leader's whole family; takes tens of milliseconds: work for a thread.

    The sum of proportional set sizes (a page that n processes share counts as 1/n for each), so that forked Python
    processes are not counted many times over; resident set sizes where the system does not tell the former.
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
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return 0
