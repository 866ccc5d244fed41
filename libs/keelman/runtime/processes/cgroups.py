"""Makes control groups (version 2): bounds of memory and processors for a process and all that it starts.

The decisions are separate from the files, which are a `Tree`: the kernel's or a test's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

NEEDED = ("memory", "cpu")
FOLDER, LEAF, PREFIX = "keelman.slice", "keelman-agent", "keelman-"
PERIOD_US = 100_000
TRIES = 20


class Tree(Protocol):
    """The files of the cgroup2 file system. Each method raises OSError as the kernel does."""

    def read(self, path: str) -> str:
        """Returns the content of a file."""

    def write(self, path: str, text: str) -> None:
        """Writes to a file that is there, all at once."""

    def make(self, path: str) -> None:
        """Makes a group."""

    def remove(self, path: str) -> None:
        """Removes a group that has neither processes nor groups."""

    def exists(self, path: str) -> bool:
        """Returns whether there is such a file or group."""

    def is_delegated(self, path: str) -> bool:
        """Returns whether the service manager has delegated this group to the processes in it."""

    def is_writable(self, path: str) -> bool:
        """Returns whether this process may make groups there and move processes."""


class KernelTree:
    """The real files."""

    def read(self, path: str) -> str:
        """Returns the content of a file."""
        with open(path, encoding="ascii") as file:
            return file.read()

    def write(self, path: str, text: str) -> None:
        """Writes to a file that is there, all at once."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def make(self, path: str) -> None:
        """Makes a group."""
        os.mkdir(path)

    def remove(self, path: str) -> None:
        """Removes a group that has neither processes nor groups."""
        os.rmdir(path)

    def exists(self, path: str) -> bool:
        """Returns whether there is such a file or group."""
        return os.path.exists(path)

    def is_delegated(self, path: str) -> bool:
        """Returns whether systemd has marked it so."""
        for name in ("user.delegate", "trusted.delegate"):
            with contextlib.suppress(OSError):
                if os.getxattr(path, name) == b"1":
                    return True
        return False

    def is_writable(self, path: str) -> bool:
        """Returns whether this process may make groups there and move processes."""
        files = (path, f"{path}/cgroup.procs", f"{path}/cgroup.subtree_control")
        return all(os.access(file, os.W_OK) for file in files)


@dataclass(frozen=True, slots=True)
class Parent:
    """The group below which groups of workloads are made. If it is `own`, its processes are moved into a leaf."""

    path: str
    own: bool


def find_parent(tree: Tree, mounts: str, groups: str, *, root: bool, managed: bool) -> Parent | str:
    """Returns where this process may make groups, or why it cannot. Reads files, changes nothing.

    `mounts` and `groups` are the contents of /proc/self/mountinfo and /proc/self/cgroup; `managed` means that a service
    manager owns the tree (then only delegated groups may be used).
    """
    mount = next(_cgroup2_mounts(mounts), None)
    path = next((line[3:] for line in groups.splitlines() if line.startswith("0::/")), None)
    if mount is None or path is None:
        return "no cgroup2 file system"
    if "/.." in path:
        return "its own group is outside of the visible part of the cgroup2 file system"
    group = mount if path == "/" else mount + path.rstrip("/")
    for candidate in (group, posixpath.dirname(group)):
        inside = candidate == mount or candidate.startswith(f"{mount}/")
        # Only the kernel's own root has no type: otherwise the visible root is a container's.
        whole = candidate == mount and not tree.exists(f"{mount}/cgroup.type")
        # In a tree without a manager, writable groups are ours; for root that holds in a container only.
        left = not managed and (candidate == mount or not root) and tree.is_writable(candidate)
        if inside and not whole and (left or tree.is_delegated(candidate)):
            return _with_controllers(tree, Parent(candidate, own=True))
    if root and not managed and not tree.exists(f"{mount}/cgroup.type"):
        return _with_controllers(tree, Parent(mount, own=False))
    return "its own group is not delegated to it" if root else "it may not make groups"


def _with_controllers(tree: Tree, parent: Parent) -> Parent | str:
    try:
        there = tree.read(f"{parent.path}/cgroup.controllers").split()
    except OSError as error:
        return f"{parent.path} cannot be read ({error.strerror})"
    missing = [name for name in NEEDED if name not in there]
    return f"{parent.path} has no controller {' and '.join(missing)}" if missing else parent


def _cgroup2_mounts(mounts: str) -> Iterator[str]:
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if right.split(" ")[0] == "cgroup2":
            yield left.split(" ")[4]


class Groups:
    """Makes and removes groups for workloads. Raises OSError where the tree does."""

    def __init__(self, tree: Tree, parent: Parent, mark: str) -> None:
        """`mark` tells the groups of this home from those of another on the host."""
        self._tree = tree
        self._parent = parent
        self._mark = mark
        self._folder = parent.path if parent.own else f"{parent.path}/{FOLDER}"

    def begin(self) -> None:
        """Prepares the parent to have groups with bounds. Called once."""
        if self._parent.own:
            self._empty(self._parent.path)
            self._enable(self._parent.path)
            return
        self._enable(self._parent.path)
        with contextlib.suppress(FileExistsError):
            self._tree.make(self._folder)
        self._enable(self._folder)

    def _empty(self, path: str) -> None:
        """Moves a group's processes into a leaf: a group that passes controllers on has no processes itself."""
        leaf = f"{path}/{LEAF}"
        for _ in range(TRIES):  # a process may be starting others
            pids = self._tree.read(f"{path}/cgroup.procs").split()
            if not pids:
                return
            with contextlib.suppress(FileExistsError):
                self._tree.make(leaf)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    self._tree.write(f"{leaf}/cgroup.procs", pid)
        raise OSError(errno.EBUSY, f"processes stay in {path}")

    def _enable(self, path: str) -> None:
        have = self._tree.read(f"{path}/cgroup.subtree_control").split()
        missing = [f"+{name}" for name in NEEDED if name not in have]
        if missing:
            self._tree.write(f"{path}/cgroup.subtree_control", " ".join(missing))

    def make(self, name: str, *, memory_bytes: int, cpus: float, within: str = "") -> str:
        """Makes a new, empty group with these bounds; 0 is no bound. Returns its path. It is below the group of several
        that `within` names, which is made if it is missing, and goes with the last of them."""
        folder = self.group_of(within) if within else self._folder
        group = f"{folder}/{self._part(name)}"
        if self._tree.exists(group):
            self.remove(group)
        if within:
            with contextlib.suppress(FileExistsError):
                self._tree.make(folder)
            self._enable(folder)
        self._tree.make(group)
        if memory_bytes:
            self._tree.write(f"{group}/memory.oom.group", "1")  # the whole group ends, not only its largest process
        self.bound(group, memory_bytes=memory_bytes, cpus=cpus)
        return group

    def group_of(self, within: str) -> str:
        """Returns the path of a group of several."""
        return f"{self._folder}/{self._part(within)}"

    def _part(self, name: str) -> str:
        return f"{PREFIX}{self._mark}-{name.replace('/', '-')}"

    def bound(self, group: str, *, memory_bytes: int, cpus: float, anew: bool = False) -> None:
        """Gives a group bounds; `anew`: in place of those that it may have. Raises FileNotFoundError without it."""
        if memory_bytes or anew:
            self._tree.write(f"{group}/memory.max", str(memory_bytes) if memory_bytes else "max")
            with contextlib.suppress(FileNotFoundError):  # a kernel without swap
                self._tree.write(f"{group}/memory.swap.max", "0" if memory_bytes else "max")
        if cpus or anew:
            quota = str(max(1000, round(cpus * PERIOD_US))) if cpus else "max"
            self._tree.write(f"{group}/cpu.max", f"{quota} {PERIOD_US}")

    def enter(self, group: str, pid: int) -> None:
        """Moves a process into a group, to which all processes that it starts from then on also belong."""
        self._tree.write(f"{group}/cgroup.procs", str(pid))

    def killed_for_memory(self, group: str) -> bool:
        """Returns whether the kernel has killed processes of the group because they used more memory than allowed."""
        try:
            lines = self._tree.read(f"{group}/memory.events").splitlines()
        except OSError:
            return False
        events = dict(line.split(" ", 1) for line in lines if " " in line)
        return any(int(events.get(name, "0")) > 0 for name in ("oom_kill", "oom_group_kill"))

    def remove(self, group: str) -> None:
        """Kills the rest of a group and removes it; a missing group is no error."""
        with contextlib.suppress(FileNotFoundError):
            self._tree.write(f"{group}/cgroup.kill", "1")
        with contextlib.suppress(FileNotFoundError):
            self._tree.remove(group)
        above = posixpath.dirname(group)
        if above != self._folder:
            with contextlib.suppress(OSError):  # others are in it
                self._tree.remove(above)
