"""Limits that the kernel enforces on workloads, in control groups and in scopes of systemd: on hosts that have them.

docs/agents.md describes how the tests run on other hosts.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from keelman.api.node.v1.workload_pb2 import ResourceLimits
from keelman.runtime.processes.process_trees import family
from support.agent.agents import Node, alive, hungry, running_node, workload
from support.eventually import eventually

WITH_SYSTEMD = Path("/run/systemd/system").exists()
CONTROLLERS = Path("/sys/fs/cgroup/cgroup.controllers")
MEMORY = CONTROLLERS.exists() and "memory" in CONTROLLERS.read_text().split()
WAYS = {
    "cgroup": ("systemd-run", "--quiet", "--scope", "-p", "Delegate=cpu memory", "--") if WITH_SYSTEMD else (),
    "systemd": (),
}
pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(os.geteuid() != 0 or not MEMORY, reason="needs root, and memory control of cgroup v2"),
    pytest.mark.parametrize("by", WAYS),
]

MIB = 2**20
HUNGRY = hungry("b'1' * 400_000_000")
BUSY = """
import os
for _ in range(3):
    os.fork()
while True:
    pass
"""


@pytest.fixture
async def node(tmp_path: Path, by: str) -> AsyncIterator[Node]:
    if by == "systemd" and not WITH_SYSTEMD:
        pytest.skip("systemd does not run here")
    async with running_node(tmp_path) as node:
        yield node


async def test_the_kernel_ends_a_workload_with_its_children_that_needs_more_memory(node: Node, by: str) -> None:
    node.state.assign(workload(script=HUNGRY, limits=ResourceLimits(memory_bytes=100 * MIB)))
    agent = node.agent(limits=by, prefix=WAYS[by])
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    assert first.limited_by == by
    await eventually(lambda: len(family(first.pid)) == 2)
    # Also under the next agent, which finds it running.
    await node.end(agent, signal.SIGKILL)
    node.agent(limits=by, prefix=WAYS[by])
    await eventually(lambda: len(node.state.first_reports) == 2)
    assert node.state.statuses["worker/demo/0"].pid == first.pid
    everything = family(first.pid)
    (node.home.workload("worker/demo/0") / "eat").touch()
    again = await eventually(
        lambda: (s := node.state.statuses["worker/demo/0"]).pid not in (0, first.pid) and s, what="it is started again"
    )
    assert again.reason == "MEMORY_LIMIT"
    assert again.message == "it and its children needed more memory than their limit of 100 MiB, and were killed"
    assert (again.restarts, again.limited_by) == (1, by)
    assert not any(map(alive, everything))


async def test_a_workload_with_its_children_has_as_much_processor_as_it_may_use(node: Node, by: str) -> None:
    node.state.assign(workload(script=BUSY, limits=ResourceLimits(cpus=0.5)))
    node.agent(limits=by, prefix=WAYS[by])
    running = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    assert running.limited_by == by
    await eventually(lambda: len(family(running.pid)) == 8)

    def used() -> float:
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in family(running.pid))

    before, begun = used(), time.monotonic()
    await eventually(lambda: used() - before > 1.5, what="it works on")
    share = 1.5 / (time.monotonic() - begun)
    print(f"\n{by}: {share:.2f} processors of 0.5")
    assert share < 0.6
