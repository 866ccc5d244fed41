"""Counts the processors that this process may use: in a container those of its control groups, not the host's."""

from __future__ import annotations

import math
import os
import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path

LEAST = 0.01
"""The smallest number that is returned, so that one may divide by it: the kernel's own least quota is near it."""


def processors() -> int:
    """Returns the number of processors that this process may use at once, at least 1; a part of one counts as one."""
    return max(1, math.ceil(processor_time()))


def processor_time(read: Callable[[str], str] | None = None) -> float:
    """Returns the processors whose time this process may use: the least of its affinity and the quotas of its control
    groups (versions 1 and 2), e.g. 0.5. `read` returns a file's text or raises OSError; None reads files."""
    have = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(LEAST, min([float(have), *quotas(read or _read)]))


def quotas(read: Callable[[str], str]) -> Iterator[float]:
    """Yields the quota of each control group that this process is in, from its own up to the visible root."""
    try:
        mounts, groups = read("/proc/self/mountinfo"), read("/proc/self/cgroup")
    except OSError:
        return
    for mount, root, is_v2 in _mounts(mounts):
        path = _path(groups, is_v2)
        if path is None:
            continue
        # In a container the group's path may be the host's; the mount then shows the part below its root.
        inside = path.removeprefix(root.rstrip("/")) if path == root or path.startswith(f"{root.rstrip('/')}/") else ""
        folder = posixpath.normpath(f"{mount}/{inside}")
        while folder == mount or folder.startswith(f"{mount}/"):
            quota = (_v2 if is_v2 else _v1)(read, folder)
            if quota is not None:
                yield quota
            folder = posixpath.dirname(folder)


def _mounts(mounts: str) -> Iterator[tuple[str, str, bool]]:
    """Yields mount point, root within its file system, and whether it is version 2, of the groups that have quotas."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "cpu" in kind[2].split(",")):
            yield fields[4], fields[3], kind[0] == "cgroup2"


def _path(groups: str, is_v2: bool) -> str | None:
    """Returns the path of this process's group, from lines like `4:cpu,cpuacct:/docker/a` or `0::/a`."""
    for line in groups.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (number == "0" and not controllers) if is_v2 else "cpu" in controllers.split(","):
            return path
    return None


def _v2(read: Callable[[str], str], folder: str) -> float | None:
    quota, _, period = _text(read, f"{folder}/cpu.max").partition(" ")
    return _ratio(quota, period)


def _v1(read: Callable[[str], str], folder: str) -> float | None:
    return _ratio(_text(read, f"{folder}/cpu.cfs_quota_us"), _text(read, f"{folder}/cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    """Returns quota / period; None for no quota ("max", "-1", or no such file)."""
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None
    return int(quota) / int(period)


def _text(read: Callable[[str], str], file: str) -> str:
    try:
        return read(file).strip()
    except OSError:
        return ""


def _read(file: str) -> str:
    return Path(file).read_text(encoding="ascii", errors="replace")
