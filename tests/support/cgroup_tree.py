"""A cgroup2 file system in memory, with the kernel's rules; it passes the same contract tests as the real one."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterable

CORE = ("cgroup.procs", "cgroup.controllers", "cgroup.subtree_control", "cgroup.events")
BELOW = ("cgroup.type", "cgroup.kill")
OF_CONTROLLERS = {
    "memory": ("memory.max", "memory.swap.max", "memory.oom.group", "memory.events", "memory.peak"),
    "cpu": ("cpu.max",),
}


class CgroupTree:
    """Groups by path. Processes are numbers that a test puts into a group; `delegated` are paths so marked."""

    def __init__(self, mount: str = "/sys/fs/cgroup", *, controllers: Iterable[str] = ("cpu", "memory", "io")) -> None:
        self.mount = mount
        self.delegated: set[str] = set()
        self.read_only = False
        self.container = False
        """The mount shows the root of a container and not the kernel's."""
        self.processes: dict[str, list[int]] = {mount: []}
        self.enabled: dict[str, set[str]] = {mount: set()}
        self.values: dict[str, str] = {}
        self._controllers = set(controllers)

    def put(self, group: str, *pids: int) -> None:
        """Creates a group with its parents if missing, and puts these processes into it."""
        for path in [group, *_above(group)][::-1]:
            if path.startswith(self.mount) and path not in self.processes:
                self.processes[path], self.enabled[path] = [], set()
        self.processes[group].extend(pids)

    def kill_for_memory(self, group: str) -> None:
        """Acts as the kernel when a group with memory.oom.group exceeds its limit."""
        self.processes[group].clear()
        self.values[f"{group}/memory.events"] = "low 0\nhigh 0\nmax 9\noom 1\noom_kill 3\noom_group_kill 1\n"

    def available(self, group: str) -> set[str]:
        """The controllers of a group."""
        return self._controllers if group == self.mount else self.enabled[posixpath.dirname(group)]

    def read(self, path: str) -> str:
        """The content of a file."""
        group, name = self._file(path)
        match name:
            case "cgroup.procs":
                return "".join(f"{pid}\n" for pid in self.processes[group])
            case "cgroup.controllers":
                return " ".join(sorted(self.available(group))) + "\n"
            case "cgroup.subtree_control":
                return " ".join(sorted(self.enabled[group])) + "\n"
            case "cgroup.events":
                below = [
                    p for g, pids in self.processes.items() if g == group or g.startswith(f"{group}/") for p in pids
                ]
                return f"populated {int(bool(below))}\nfrozen 0\n"
        return self.values.get(path, "max\n" if name.endswith("max") else "")

    def write(self, path: str, text: str) -> None:
        """Writes to an existing file."""
        group, name = self._file(path)
        match name:
            case "cgroup.procs":
                self._enter(group, int(text))
            case "cgroup.subtree_control":
                self._enable(group, text.split())
            case "cgroup.kill":
                for process in self.processes:
                    if process == group or process.startswith(f"{group}/"):
                        self.processes[process].clear()
            case "cgroup.controllers" | "cgroup.events" | "memory.events":
                raise _error(errno.EINVAL, path)
            case _:
                self.values[path] = text

    def make(self, path: str) -> None:
        """Creates a group."""
        if path in self.processes:
            raise _error(errno.EEXIST, path)
        if posixpath.dirname(path) not in self.processes:
            raise _error(errno.ENOENT, path)
        self.processes[path], self.enabled[path] = [], set()

    def remove(self, path: str) -> None:
        """Removes a group that has neither processes nor groups."""
        if path not in self.processes:
            raise _error(errno.ENOENT, path)
        if self.processes[path] or any(posixpath.dirname(group) == path for group in self.processes):
            raise _error(errno.EBUSY, path)
        del self.processes[path], self.enabled[path]
        self.values = {file: value for file, value in self.values.items() if posixpath.dirname(file) != path}

    def exists(self, path: str) -> bool:
        """Whether this file or group exists."""
        try:
            self._file(path)
        except FileNotFoundError:
            return path in self.processes
        return True

    def is_delegated(self, path: str) -> bool:
        """Whether the test has delegated the path."""
        return path in self.delegated

    def is_writable(self, path: str) -> bool:
        """True for any existing group, unless the test has made the tree read-only."""
        return path in self.processes and not self.read_only

    def _file(self, path: str) -> tuple[str, str]:
        group, name = posixpath.split(path)
        if group in self.processes:
            files = {*CORE, *(BELOW if group != self.mount or self.container else ())}
            if group != self.mount:
                files |= {file for item in self.available(group) for file in OF_CONTROLLERS.get(item, ())}
            if name in files:
                return group, name
        raise _error(errno.ENOENT, path)

    def _enter(self, group: str, pid: int) -> None:
        former = next((pids for pids in self.processes.values() if pid in pids), None)
        if former is None:
            raise _error(errno.ESRCH, group)
        if self.enabled[group] and group != self.mount:
            raise _error(errno.EBUSY, group)
        former.remove(pid)
        self.processes[group].append(pid)

    def _enable(self, group: str, words: list[str]) -> None:
        for word in words:
            if word[1:] not in self.available(group):
                raise _error(errno.ENOENT, group)
        if self.processes[group] and (group != self.mount or self.container):
            raise _error(errno.EBUSY, group)
        for word in words:
            (self.enabled[group].add if word[0] == "+" else self.enabled[group].discard)(word[1:])


def _above(path: str) -> list[str]:
    results = []
    while path != "/":
        path = posixpath.dirname(path)
        results.append(path)
    return results


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
