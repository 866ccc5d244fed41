"""The autoscaler in a state service with obedient agents, whose workers report a load that the test sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.operation_pb2 import OPERATION_KIND_SCALE, OPERATION_STATE_FAILED, Operation
from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from keelman.api.connect.v1.worker_pb2 import WorkerUsage
from keelman.api.node.v1.workload_pb2 import WorkloadStatus
from keelman.rpc.times import to_duration
from keelman.state.reports.reports import Reports
from support.eventually import eventually
from support.state.service import Agent, Clients, free_range, state_in_loop

pytestmark = pytest.mark.component
QUICK = Autoscale(
    min_workers=1, max_workers=20, scale_out_lag_records=1000, sample_period=to_duration(1), samples=2,
    cool_down=to_duration(0),
)  # fmt: skip
BUSY = WorkerUsage(cpus=0.9, lag_records=10_000_000, records_per_second=5000)
FULL = WorkerUsage(cpus=0.3, waiting_tasks=192, running_tasks=64)
IDLE, FAIR = WorkerUsage(cpus=0.01), WorkerUsage(cpus=0.5)


@dataclass
class Load:
    """The report of each worker."""

    usage: WorkerUsage | None = None


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    reported = Load()
    monkeypatch.setattr(Reports, "recent_usage", lambda _self, _worker: reported.usage)
    return reported


async def steps(clients: Clients) -> list[Operation]:
    """The operations that scale, the newest first."""
    answer = await clients.operations.ListOperations(ListOperationsRequest(kind=OPERATION_KIND_SCALE))
    return list(answer.operations)


async def runs(clients: Clients, workers: int) -> None:
    async def ready() -> bool:
        status = (await clients.worker_cluster("demo")).status
        return (status.ready_workers, status.wanted_workers) == (workers, workers)

    await eventually(ready, what=f"{workers} workers run")


async def needs(clients: Clients, workers: int) -> bool:
    status = (await clients.worker_cluster("demo")).status
    return status.HasField("needed_workers") and status.needed_workers == workers


async def begin(clients: Clients) -> None:
    await clients.create_external("ext", "127.0.0.1:1")
    await clients.create_workers("demo", brokers="ext", autoscale=QUICK)
    await clients.start_workers("demo")
    await runs(clients, 1)


async def test_a_backlog_takes_one_step_to_all_workers_and_they_leave_one_by_one(tmp_path: Path, load: Load) -> None:
    async with state_in_loop(tmp_path, worker_ports=free_range(30)) as (clients, _), Agent(clients, "n1"):
        await begin(clients)
        load.usage = BUSY
        await runs(clients, 20)
        status = (await clients.worker_cluster("demo")).status
        assert (status.scaling.former_workers, status.needed_workers) == (1, 20)
        assert "10,000,000 records of lag" in status.scaling.reason
        load.usage = IDLE
        await runs(clients, 18)
        load.usage = FAIR
        goals = [operation.target.goal for operation in await steps(clients)]
        assert goals[-3:] == ["18 workers", "19 workers", "20 workers"], goals
        assert (await clients.worker_cluster("demo")).status.needed_workers < 18, "of these each is used by half"


async def test_tasks_without_a_slot_bring_workers_to_nodes_that_have_none(tmp_path: Path, load: Load) -> None:
    async with state_in_loop(tmp_path, worker_ports=free_range(30)) as (clients, _), Agent(clients, "n1"):
        await begin(clients)
        load.usage = FULL
        await eventually(lambda: needs(clients, 1), seconds=20, what="there is no other node")
        async with Agent(clients, "n2"), Agent(clients, "n3"):
            await runs(clients, 3)
            load.usage = FAIR
            assert [operation.target.goal for operation in await steps(clients)] == ["3 workers"]
            assert "192 tasks without a slot" in (await clients.worker_cluster("demo")).status.scaling.reason
            workloads = await clients.workloads()
            assert {w.node for name, w in workloads.items() if name.startswith("worker/")} == {"n1", "n2", "n3"}


async def test_what_a_load_needs_is_told_by_the_workers_that_run(tmp_path: Path, load: Load) -> None:
    async with state_in_loop(tmp_path, worker_ports=free_range(30)) as (clients, _), Agent(clients, "n1") as agent:
        await begin(clients)
        agent.special |= {f"worker/demo/{number}": WorkloadStatus(state="WORKLOAD_STATE_STARTING", generation=1)
                          for number in range(1, 20)}  # fmt: skip
        load.usage = WorkerUsage(cpus=0.9, lag_records=601_000, records_per_second=2000)
        await eventually(lambda: needs(clients, 6), seconds=20, what="one worker of 2,000 records/s bears a sixth")
        await eventually(lambda: has_begun(clients, 6), seconds=20, what="the others are being started")
        assert await needs(clients, 6)


async def has_begun(clients: Clients, workers: int) -> bool:
    return (await clients.worker_cluster("demo")).status.wanted_workers == workers


async def test_workers_that_have_come_up_stay_if_not_all_of_a_step_do(tmp_path: Path, load: Load) -> None:
    async with state_in_loop(tmp_path, worker_ports=free_range(5)) as (clients, _), Agent(clients, "n1"):
        await begin(clients)
        load.usage = BUSY

        async def taken_back() -> Operation | None:
            load.usage = FAIR if (found := await steps(clients)) else BUSY
            return next((operation for operation in found if operation.state == OPERATION_STATE_FAILED), None)

        await eventually(taken_back, what="the step has failed")
        await runs(clients, 5)
        assert (await clients.worker_cluster("demo")).status.scaling.reason.startswith("taken back to 5: ")
