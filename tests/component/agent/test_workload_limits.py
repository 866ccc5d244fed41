"""Limits of memory and processors of running workloads, enforced by the agent itself."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from keelman.api.node.v1.workload_pb2 import ResourceLimits
from keelman.runtime.processes.process_trees import family
from support.agent.agents import SLEEP, Node, alive, hungry, workload
from support.eventually import eventually

pytestmark = pytest.mark.component

MIB = 2**20
HUNGRY = hungry("200_000_000")


async def test_a_workload_whose_child_takes_too_much_memory_is_killed_and_says_so(node: Node) -> None:
    node.state.assign(workload(script=HUNGRY, limits=ResourceLimits(memory_bytes=100 * MIB)))
    agent = node.agent(limits="watchdog")
    first = await eventually(lambda: node.state.in_state("worker/demo/0", "STARTING"))
    assert first.limited_by == "watchdog"
    await eventually(lambda: len(family(first.pid)) == 2)
    # Also by the next agent, which adopts it.
    await node.end(agent, signal.SIGKILL)
    node.agent(limits="watchdog")
    await eventually(lambda: len(node.state.first_reports) == 2)
    everything = family(first.pid)
    (node.home.workload("worker/demo/0") / "eat").touch()
    again = await eventually(
        lambda: (s := node.state.statuses["worker/demo/0"]).pid not in (0, first.pid) and s, what="it is started again"
    )
    assert again.reason == "MEMORY_LIMIT"
    used = int(again.message.removeprefix("it and its children used ").partition(" ")[0])
    assert 100 < used < 300, "it may be seen while it takes the memory"
    assert again.message.endswith("MiB of memory, their limit is 100 MiB: they were killed")
    assert (again.restarts, again.limited_by) == (1, "watchdog")
    assert not any(map(alive, everything))
    assert "cause=memory" in node.log_of_agent()


async def test_a_workload_runs_on_as_many_processors_as_it_may_use(node: Node) -> None:
    names = [f"worker/demo/{n}" for n in range(3)]
    resource_limits = ResourceLimits(cpus=0.5)
    node.state.assign(*(workload(name, SLEEP, limits=resource_limits) for name in names[:2]), workload(names[2], SLEEP))
    node.agent(limits="watchdog")
    await eventually(lambda: all(node.state.in_state(name, "STARTING") for name in names))
    pids = [node.state.statuses[name].pid for name in names]
    everywhere = os.sched_getaffinity(0)
    chosen = [os.sched_getaffinity(pid) for pid in pids]
    assert [len(c) for c in chosen] == [1, 1, len(everywhere)]
    assert len(everywhere) == 1 or chosen[0] != chosen[1]
    assert [node.state.statuses[name].limited_by for name in names] == ["watchdog", "watchdog", ""]
    assert "limits                   by=watchdog because=agent.limits" in node.log_of_agent()


async def test_an_agent_that_is_asked_for_what_its_host_has_not_does_not_start(node: Node) -> None:
    if Path("/run/systemd/system").exists():
        pytest.skip("systemd runs here")
    agent = node.agent(limits="systemd")
    await eventually(lambda: agent.poll() is not None)
    assert "agent.limits: 'systemd' is not legal" in node.log_of_agent()
    assert "systemd does not run here" in node.log_of_agent()
