"""A worker whose process ends at each start: the resulting events, and the status that users see."""

from pathlib import Path

import pytest

from keelman.api.event.v1.watch_service_pb2 import WatchRequest
from keelman.api.event.v1.watch_service_pb2_grpc import WatchServiceStub
from keelman.api.node.v1 import workload_pb2
from keelman.rpc.channels import channel
from support.eventually import eventually
from support.state.service import Agent, state_in_loop

pytestmark = pytest.mark.component
WORKER = "worker/demo/0"
TRIES = 10


def status(state: str, restarts: int) -> workload_pb2.WorkloadStatus:
    failed = state == "FAILED"
    return workload_pb2.WorkloadStatus(
        state=f"WORKLOAD_STATE_{state}", generation=1, restarts=restarts, pid=0 if failed else 100 + restarts,
        exit_code=1 if failed else None, message="it ended with 1" if failed else "",
    )  # fmt: skip


async def revision(port: int) -> int:
    async with channel(f"127.0.0.1:{port}") as link:
        call = WatchServiceStub(link).Watch(WatchRequest(nouns=["node"]))
        answer = await call.read()
        call.cancel()
        return answer.revision


async def test_a_crash_loop_is_one_event_a_try(tmp_path: Path) -> None:
    async with state_in_loop(tmp_path) as (clients, port), Agent(clients, "n1") as agent:
        await clients.create_external("default", "127.0.0.1:1")
        await clients.create_workers("demo", count=1)
        agent.special = {WORKER: status("STARTING", 0)}
        await clients.start_workers("demo")
        await eventually(lambda: WORKER in agent.workloads)

        async def tell(state: str, restarts: int) -> None:
            agent.special[WORKER] = status(state, restarts)
            agent.report()
            await eventually(lambda: agent.received and agent.received[-1] == agent.reported)

        for number in range(4):
            await tell("STARTING", number)
            await tell("FAILED", number)
        before = await revision(port)
        for number in range(4, 4 + TRIES):
            await tell("PREPARING", number - 1)
            await tell("STARTING", number)
            shown = (await clients.workloads())[WORKER].status
            assert shown.state == workload_pb2.WORKLOAD_STATE_FAILED
            await tell("FAILED", number)
        assert await revision(port) - before == TRIES
        assert (await clients.workloads())[WORKER].status.restarts == 3 + TRIES
        await tell("RUNNING", 3 + TRIES)
        assert (await clients.workloads())[WORKER].status.state == workload_pb2.WORKLOAD_STATE_RUNNING
