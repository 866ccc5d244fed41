"""Agents that are killed one after another: a worker, its Spark service and others keep running without them."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from keelman.api.node.v1.workload_pb2 import ResourceLimits, WorkloadStatus
from keelman.runtime.processes.process_trees import start_of
from support.agent.agents import SLEEP, STUBBORN, Node, alive, workload
from support.agent.workloads import real_workloads
from support.eventually import eventually

pytestmark = pytest.mark.component

ROUNDS = 10


async def test_ten_agents_killed_in_a_row_and_every_workload_keeps_its_process(bootstrap: str, node: Node) -> None:
    real = real_workloads(bootstrap, "adopted")
    limits = ResourceLimits(cpus=1, memory_bytes=2**30)
    scripts = [workload("worker/demo/0", SLEEP, limits=limits), workload("worker/demo/1", STUBBORN)]
    names = [w.name for w in (*real, *scripts)]
    node.state.assign(*real, *scripts)
    agent = node.agent()
    await eventually(lambda: all(node.state.in_state(w.name, "RUNNING") for w in real))
    await eventually(lambda: all(node.state.in_state(w.name, "STARTING") for w in scripts))
    before = {name: node.state.statuses[name] for name in names}
    begun = {status.pid: start_of(status.pid) for status in before.values()}
    for number in range(ROUNDS):
        told = len(node.state.first_reports)
        agent.kill()
        await asyncio.to_thread(agent.wait, 300)
        agent = node.agent()
        if number % 3 == 2:  # in the middle of its start
            await eventually(lambda agent=agent: node.home.agent_lock.read_text() == str(agent.pid), every=0.005)  # type: ignore[misc]
            continue
        await eventually(lambda told=told: len(node.state.first_reports) > told)  # type: ignore[misc]
        assert {pid: start_of(pid) for pid in begun} == begun, f"after {number + 1} kills"

    def found(name: str) -> WorkloadStatus:
        return node.state.statuses[name]

    await eventually(lambda: node.state.first_reports[-1] == set(names))
    await eventually(lambda: all(node.state.in_state(w.name, "RUNNING") for w in real))
    assert {name: (found(name).pid, found(name).restarts) for name in names} == {
        name: (status.pid, 0) for name, status in before.items()
    }
    assert {pid: start_of(pid) for pid in begun} == begun
    # The last agent supervises them as the first did: a worker that dies is restarted, a removed one is stopped.
    os.kill(found("worker/demo/0").pid, signal.SIGKILL)
    again = await eventually(lambda: (s := found("worker/demo/0")).pid not in (0, before["worker/demo/0"].pid) and s)
    assert again.restarts == 1
    node.state.remove("worker/adopted/0")
    await eventually(lambda: not alive(before["worker/adopted/0"].pid))
    assert alive(before["spark/n1"].pid)
