"""How workloads are held to their limits, and the effect of each way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.agent.workloads.limits import (
    NOT_HELD,
    CgroupWay,
    Limiter,
    LimitMeans,
    SystemdWay,
    choose,
    held_record,
    make_limiter,
    over_limit,
    processors_for,
    scope_command,
)
from keelman.agent.workloads.memory import over
from keelman.agent.workloads.tenant_limits import SPARK_BYTES, tenant_limits
from keelman.model.errors import InvalidArgument
from keelman.model.workload import NO_LIMITS, ResourceLimits
from keelman.runtime.home import Home
from keelman.runtime.processes.cgroups import Groups, Parent
from keelman.runtime.processes.children import ChildRecord
from support.cgroup_tree import CgroupTree
from support.eventually import eventually

MIB = 2**20
BOTH = ResourceLimits(1.5, 512 * MIB)
RECORD = ChildRecord("worker/a/0", "u", 1, 0, ("python", "-m", "x"), pid=os.getpid())
MOUNT = "/sys/fs/cgroup"


@pytest.mark.parametrize(
    ("expected", "host", "by", "reason"),
    [
        ("auto", LimitMeans("", "off"), "cgroup", ""),
        ("auto", LimitMeans("none here", ""), "systemd", ""),
        ("auto", LimitMeans("none here", "off"), "watchdog", "no cgroup: none here; no systemd: off"),
        ("watchdog", LimitMeans("", ""), "watchdog", "agent.limits"),
        ("systemd", LimitMeans("", ""), "systemd", "agent.limits"),
    ],
)
def test_the_first_that_the_host_has(expected: str, host: LimitMeans, by: str, reason: str) -> None:
    assert choose(expected, host) == (by, reason)


def test_one_that_was_asked_for_and_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"agent.limits: 'cgroup' is not legal.*none here"):
        choose("cgroup", LimitMeans("none here", ""))
    with pytest.raises(InvalidArgument, match=r"'systemd'.*off"):
        choose("systemd", LimitMeans("", "off"))


def cgroups() -> tuple[CgroupTree, Limiter]:
    tree = CgroupTree()
    tree.put(MOUNT, os.getpid())
    groups = Groups(tree, Parent(MOUNT, own=False), "ab")
    groups.begin()
    return tree, Limiter({"cgroup": CgroupWay(groups)}, "cgroup")


def test_a_group_of_its_own_says_that_it_was_killed_for_its_memory() -> None:
    tree, limiter = cgroups()
    assert limiter.hold("worker/a/0", NO_LIMITS) == NOT_HELD
    held = limiter.hold("worker/a/0", BOTH)
    record = held_record(RECORD, held, BOTH)
    assert (record.limited_by, record.memory_limit, record.command) == ("cgroup", 512 * MIB, RECORD.command)
    assert held.enter is not None
    held.enter(os.getpid())
    assert tree.processes[record.group] == [os.getpid()]
    assert limiter.killed_for_memory(record) == ""
    tree.kill_for_memory(record.group)
    # Another agent has started since.
    words = "it and its children needed more memory than their limit of 512 MiB, and were killed"
    assert limiter.killed_for_memory(record) == words
    limiter.release("worker/a/0", record)
    assert not tree.exists(record.group)
    limiter.release("worker/a/0", record)
    assert limiter.killed_for_memory(RECORD) == ""
    limiter.release("worker/a/0", RECORD)


def test_where_a_group_cannot_be_made_the_agent_watches() -> None:
    tree, limiter = cgroups()
    tree.enabled[f"{MOUNT}/keelman.slice"].clear()  # the controllers were taken away
    held = limiter.hold("worker/a/0", ResourceLimits(0, MIB))
    assert (held.by, held.enter, held.prefix) == ("watchdog", None, ())
    assert held_record(RECORD, held, ResourceLimits(0, MIB)).memory_limit == MIB


def test_all_that_a_tenant_runs_is_in_one_group_with_the_limits_of_its_workers() -> None:
    tree, limiter = cgroups()
    limiter.share(tenant_limits([("a", BOTH), ("a", BOTH), ("b", ResourceLimits(0, 256 * MIB)), ("b", BOTH)]))
    worker = limiter.hold("worker/a/0", BOTH, tenant="a")
    spark = limiter.hold("spark/n1/a", NO_LIMITS, tenant="a")
    other = limiter.hold("spark/n1/b", NO_LIMITS, tenant="b")
    assert limiter.hold("spark/n1", NO_LIMITS) == NOT_HELD, "the node's own is no tenant's"
    tenant = f"{MOUNT}/keelman.slice/keelman-ab-tenant-a"
    assert (worker.group, spark.group) == (f"{tenant}/keelman-ab-worker-a-0", f"{tenant}/keelman-ab-spark-n1-a")
    assert tree.values[f"{tenant}/cpu.max"] == "300000 100000"
    assert tree.values[f"{tenant}/memory.max"] == str(2 * 512 * MIB + SPARK_BYTES)
    assert f"{tenant}/memory.oom.group" not in tree.values, "one process too many does not end the whole tenant"
    assert tree.values[f"{worker.group}/memory.max"] == str(512 * MIB)
    assert f"{spark.group}/memory.max" not in tree.values
    beside = f"{MOUNT}/keelman.slice/keelman-ab-tenant-b"
    assert tree.values[f"{beside}/cpu.max"] == "max 100000", "one of its workers has no limit"
    assert tree.values[f"{beside}/memory.max"] == str(768 * MIB + SPARK_BYTES)
    record = held_record(RECORD, spark, NO_LIMITS)
    assert (record.limited_by, record.memory_limit) == ("cgroup", 2 * 512 * MIB + SPARK_BYTES)
    for held, pid in ((worker, 11), (spark, 12), (other, 13)):
        tree.put(MOUNT, pid)
        assert held.enter is not None
        held.enter(pid)
    limiter.share(tenant_limits([("a", BOTH)]))  # a worker was removed; b's group keeps its limits
    assert tree.values[f"{tenant}/memory.max"] == str(512 * MIB + SPARK_BYTES)
    assert tree.values[f"{beside}/memory.max"] == str(768 * MIB + SPARK_BYTES)
    tree.write(f"{tenant}/cgroup.kill", "1")
    assert (tree.processes[worker.group], tree.processes[spark.group], tree.processes[other.group]) == ([], [], [13])
    limiter.release("worker/a/0", held_record(RECORD, worker, BOTH))
    assert tree.exists(spark.group)
    limiter.release("spark/n1/a", record)
    assert not tree.exists(tenant), "it goes with the last of its workloads"


def test_a_tenants_group_that_cannot_be_made_leaves_its_workloads_as_others() -> None:
    tree, limiter = cgroups()
    tree.enabled[f"{MOUNT}/keelman.slice"].clear()  # the controllers were taken away
    assert limiter.hold("worker/a/0", ResourceLimits(0, MIB), tenant="a").by == "watchdog"
    assert limiter.hold("spark/n1/a", NO_LIMITS, tenant="a") == NOT_HELD
    limiter.share({"a": BOTH})
    assert Limiter({}, "watchdog").hold("spark/n1/a", NO_LIMITS, tenant="a") == NOT_HELD


def test_a_scope_of_systemd_is_asked_for_by_words_before_the_command() -> None:
    assert scope_command("u.scope", BOTH) == (
        "systemd-run", "--scope", "--quiet", "--unit=u.scope", "-p", "MemoryMax=536870912", "-p", "MemorySwapMax=0",
        "-p", "CPUQuota=150%", "--",
    )  # fmt: skip
    assert scope_command("u.scope", ResourceLimits(0.001, 0), ("--user",))[1:] == (
        "--user", "--scope", "--quiet", "--unit=u.scope", "-p", "CPUQuota=1%", "--",
    )  # fmt: skip
    held = SystemdWay(user=True).hold("worker/a/0", BOTH, None, "")
    record = held_record(RECORD, held, BOTH)
    assert record.group.startswith("keelman-worker-a-0-")
    assert record.command == (*scope_command(record.group, BOTH, ("--user",)), *RECORD.command)


@pytest.mark.parametrize(
    ("cpus", "others", "chosen"),
    [
        (1.0, [], {0}),
        (0.2, [], {0}),
        (1.5, [], {0, 1}),
        (2.0, [[0, 1]], {2, 3}),
        (1.0, [[0], [1], [2], [3], [0], [2]], {1}),
        (99, [[0]], {0, 1, 2, 3}),
    ],
)
def test_processors_that_the_fewest_others_have(cpus: float, others: list[list[int]], chosen: set[int]) -> None:
    assert processors_for(cpus, range(4), others) == chosen


def test_the_watchdog_gives_processors_and_knows_those_of_an_earlier_agent() -> None:
    limiter, first = Limiter({}, "watchdog"), min(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]) as process:
        try:
            held = limiter.hold("worker/a/0", ResourceLimits(1, 0))
            assert held.enter is not None
            held.enter(process.pid)
            assert os.sched_getaffinity(process.pid) == {first}
            record = ChildRecord("worker/a/0", "u", 1, 0, (), pid=process.pid, limited_by="watchdog")
            other = Limiter({}, "watchdog")
            other.adopt("worker/a/0", record)
            second = other.hold("worker/b/0", ResourceLimits(1, 0))
            assert second.enter is not None
            second.enter(process.pid)
            expected = {first} if len(os.sched_getaffinity(0)) == 1 else {sorted(os.sched_getaffinity(0))[1]}
            assert os.sched_getaffinity(process.pid) == expected
        finally:
            process.kill()


async def test_memory_of_a_whole_family_is_weighed(tmp_path: Path) -> None:
    child = "import time; x = bytearray(60_000_000); open('up', 'a').write('x'); time.sleep(60)"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', {child!r}])"
    command = [sys.executable, "-S", "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True) as process:
        try:
            await eventually((tmp_path / "up").exists)
            (used,) = over({process.pid: 50 * MIB}).values()
            assert 57 * MIB < used < 120 * MIB
            assert over({process.pid: 200 * MIB}) == {}
        finally:
            os.killpg(process.pid, 9)
    await eventually(lambda: over({process.pid: 1}) == {}, seconds=10, what="the killed child is gone too")
    assert over_limit(70 * MIB, 50 * MIB) == (
        "it and its children used 70 MiB of memory, their limit is 50 MiB: they were killed"
    )


def test_this_host_has_a_way(tmp_path: Path) -> None:
    assert make_limiter("watchdog", Home(tmp_path)).first == "watchdog"
