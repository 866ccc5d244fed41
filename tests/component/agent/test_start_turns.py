"""Workers of a node start a few at a time: a waiting worker is reported as such, and may be stopped."""

import pytest

from keelman.agent.workloads.local import QUEUED
from keelman.api.node.v1.workload_pb2 import WorkloadStatus
from keelman.model.workload import START_QUEUED
from support.agent.agents import STOPPED, Node, healthy, workload
from support.eventually import eventually

pytestmark = pytest.mark.component
NAMES = tuple(f"worker/demo/{n}" for n in range(3))


async def test_workers_start_one_after_the_other_where_one_may_start_at_once(node: Node) -> None:
    first, second, third = NAMES

    def queued(name: str) -> WorkloadStatus | None:
        status = node.state.statuses.get(name)
        return status if status and (status.reason, status.message) == (START_QUEUED, QUEUED) else None

    node.state.assign(workload(first))
    node.agent(starts_at_once="1")
    await eventually(lambda: node.state.in_state(first, "STARTING"))
    node.state.assign(workload(second))
    node.state.assign(workload(third, script=healthy(node, third), python="-u"))
    for name in (second, third):
        waits = await eventually(lambda name=name: queued(name))
        assert (waits.pid, node.state.in_state(name, "PREPARING")) == (0, waits)
    node.state.assign(workload(second, goal=STOPPED))
    await eventually(lambda: node.state.in_state(second, "STOPPED"))
    assert node.state.statuses[second].reason == ""
    node.state.assign(workload(first, goal=STOPPED))
    done = await eventually(lambda: node.state.in_state(third, "RUNNING"))
    assert (done.reason, done.message) == ("", "")
    node.state.assign(workload(second, generation=2))
    await eventually(lambda: node.state.in_state(second, "STARTING"), what="a ready worker no longer holds a turn")
