"""Control groups: where and how they are created, and how the kernel's figures are read."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keelman.runtime.processes.cgroups import Groups, KernelTree, Parent, Tree, find_parent
from support.cgroup_tree import CgroupTree
from support.eventually import eventually

MOUNT = "/sys/fs/cgroup"
V2 = f"30 25 0:26 / {MOUNT} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "30 25 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)
UNIT = f"{MOUNT}/system.slice/keelman-agent.service"


def service_tree(group: str = UNIT, *pids: int) -> CgroupTree:
    tree = CgroupTree()
    tree.put(group, *(pids or (10, 11)))
    for path in (MOUNT, f"{MOUNT}/system.slice"):
        if path in tree.enabled:
            tree.enabled[path] = {"memory", "cpu"}
    return tree


def found(tree: CgroupTree, own: str, *, root: bool = True, managed: bool = True, mounts: str = V2) -> Parent | str:
    return find_parent(tree, mounts, f"9:memory:/x\n0::{own}\n", root=root, managed=managed)


def test_below_its_own_group_where_that_is_delegated() -> None:
    tree = service_tree()
    own = UNIT.removeprefix(MOUNT)
    assert found(tree, own) == "its own group is not delegated to it"
    assert found(tree, own, root=False) == "it may not make groups"
    tree.delegated.add(UNIT)
    assert found(tree, own) == found(tree, own, root=False) == Parent(UNIT, own=True)
    # The service manager has put it into a leaf itself.
    tree.put(f"{UNIT}/agent", 12)
    assert found(tree, f"{own}/agent") == Parent(UNIT, own=True)


def test_in_a_container_and_where_nobody_manages_the_tree() -> None:
    tree = service_tree()
    assert found(tree, "/", managed=False) == Parent(MOUNT, own=False)
    assert found(tree, "/", managed=False, root=False) == "it may not make groups"
    assert found(tree, UNIT.removeprefix(MOUNT), managed=False) == Parent(MOUNT, own=False)
    tree.container = True
    assert found(tree, "/", managed=False) == Parent(MOUNT, own=True)
    tree.read_only = True
    assert found(tree, "/", managed=False) == "its own group is not delegated to it"
    assert found(tree, "/../outside", managed=False).startswith("its own group is outside")  # type: ignore[union-attr]


def test_the_session_of_a_user_is_left_alone_where_a_manager_has_it() -> None:
    session = f"{MOUNT}/user.slice/terminal.scope"
    tree = service_tree(session, 20)
    tree.enabled[f"{MOUNT}/user.slice"] = {"memory", "cpu"}
    own = session.removeprefix(MOUNT)
    assert found(tree, own, root=False, managed=True) == "it may not make groups"
    assert found(tree, own, root=False, managed=False) == Parent(session, own=True)


def test_without_the_tree_or_its_controllers() -> None:
    assert find_parent(CgroupTree(), "", "0::/\n", root=True, managed=False) == "no cgroup2 file system"
    assert find_parent(CgroupTree(), V2, "1:memory:/\n", root=True, managed=False) == "no cgroup2 file system"
    tree = CgroupTree("/sys/fs/cgroup/unified", controllers=["hugetlb"])
    hybrid = found(tree, "/", managed=False, mounts=HYBRID)
    assert hybrid == "/sys/fs/cgroup/unified has no controller memory and cpu"
    tree = service_tree()
    tree.delegated.add(UNIT)
    tree.enabled[f"{MOUNT}/system.slice"] = {"memory"}
    assert found(tree, UNIT.removeprefix(MOUNT)) == f"{UNIT} has no controller cpu"


def test_what_runs_in_its_own_group_goes_into_a_leaf_and_workloads_beside_it() -> None:
    tree = service_tree()
    groups = Groups(tree, Parent(UNIT, own=True), "ab12")
    groups.begin()
    groups.begin()  # the next agent finds all groups
    assert tree.processes[UNIT] == []
    assert tree.processes[f"{UNIT}/keelman-agent"] == [10, 11]
    group = groups.make("worker/demo/0", memory_bytes=512 * 2**20, cpus=1.5)
    assert group == f"{UNIT}/keelman-ab12-worker-demo-0"
    assert tree.values == {
        f"{group}/memory.max": "536870912", f"{group}/memory.swap.max": "0", f"{group}/memory.oom.group": "1",
        f"{group}/cpu.max": "150000 100000",
    }  # fmt: skip
    groups.enter(group, 10)
    assert tree.processes[group] == [10]
    assert not groups.killed_for_memory(group)
    tree.kill_for_memory(group)
    assert groups.killed_for_memory(group)
    groups.remove(group)
    groups.remove(group)
    assert not tree.exists(group)
    assert not groups.killed_for_memory(group)


def test_a_group_that_an_earlier_process_left_is_made_anew() -> None:
    tree = service_tree(MOUNT)
    groups = Groups(tree, Parent(MOUNT, own=False), "ab12")
    groups.begin()
    group = groups.make("spark/n1", memory_bytes=1, cpus=0)
    assert group == f"{MOUNT}/keelman.slice/keelman-ab12-spark-n1"
    tree.put(group, 99)
    tree.kill_for_memory(group)
    tree.put(group, 98)
    assert groups.make("spark/n1", memory_bytes=0, cpus=0.001) == group
    assert tree.processes[group] == []
    assert not groups.killed_for_memory(group)
    assert tree.values == {f"{group}/cpu.max": "1000 100000"}


def test_a_process_that_cannot_be_moved_is_told() -> None:
    tree = service_tree()
    groups = Groups(tree, Parent(UNIT, own=True), "m")
    tree._enter = lambda group, pid: None  # type: ignore[method-assign] # as if it forks faster than it is moved
    with pytest.raises(OSError, match="processes stay in"):
        groups.begin()


# The contract of the files, which the fake must keep as the kernel does.


@contextlib.contextmanager
def process(tree: Tree, group: str) -> Iterator[int]:
    if isinstance(tree, CgroupTree):
        tree.put(tree.mount, 4711)
        yield 4711
        return
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]) as opened:
        try:
            yield opened.pid
        finally:
            opened.kill()


def real_mount() -> str:
    for line in Path("/proc/self/mountinfo").read_text().splitlines() if Path("/proc/self/mountinfo").exists() else ():
        left, _, right = line.partition(" - ")
        if right.startswith("cgroup2 ") and os.access(left.split()[4], os.W_OK):
            return left.split()[4]
    return ""


@pytest.fixture(params=["fake", "kernel"])
def tree_and_group(request: pytest.FixtureRequest) -> Iterator[tuple[Tree, str]]:
    if request.param == "fake":
        yield CgroupTree(), f"{MOUNT}/keelman-test"
        return
    mount = real_mount()
    if not mount:
        pytest.skip("no cgroup2 file system that may be written")
    group = f"{mount}/keelman-test-{os.getpid()}"
    try:
        yield KernelTree(), group
    finally:
        for path in (f"{group}/below", group):
            with contextlib.suppress(OSError):
                os.rmdir(path)


async def test_the_contract_of_the_files(tree_and_group: tuple[Tree, str]) -> None:
    tree, group = tree_and_group
    mount = os.path.dirname(group)
    assert not tree.exists(group)
    assert not tree.exists(f"{mount}/cgroup.type")
    tree.make(group)
    assert tree.exists(group)
    assert tree.exists(f"{group}/cgroup.type")
    refused: list[tuple[type[OSError], Callable[[], object]]] = [
        (FileExistsError, lambda: tree.make(group)),
        (FileNotFoundError, lambda: tree.make(f"{group}/no/below")),
        (FileNotFoundError, lambda: tree.remove(f"{group}/no")),
        (FileNotFoundError, lambda: tree.read(f"{group}/memory.max")),  # its parent delegates no controllers
        (FileNotFoundError, lambda: tree.write(f"{group}/memory.max", "1")),
        (FileNotFoundError, lambda: tree.write(f"{group}/cgroup.subtree_control", "+memory")),
        (ProcessLookupError, lambda: tree.write(f"{group}/cgroup.procs", str(2**22 + 1))),
    ]
    for error, call in refused:
        with pytest.raises(error):
            call()
    assert tree.read(f"{group}/cgroup.procs") == ""
    assert tree.read(f"{group}/cgroup.subtree_control").split() == []
    assert tree.read(f"{group}/cgroup.controllers").split() == []
    with process(tree, group) as pid:
        tree.write(f"{group}/cgroup.procs", str(pid))
        assert tree.read(f"{group}/cgroup.procs").split() == [str(pid)]
        assert "populated 1" in tree.read(f"{group}/cgroup.events")
        with pytest.raises(OSError, match=r"busy"):
            tree.remove(group)
        tree.write(f"{group}/cgroup.kill", "1")
        await eventually(lambda: "populated 0" in tree.read(f"{group}/cgroup.events"))
    tree.make(f"{group}/below")
    with pytest.raises(OSError, match=r"busy"):
        tree.remove(group)
    tree.remove(f"{group}/below")
    tree.remove(group)
    assert not tree.exists(group)
