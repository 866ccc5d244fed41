"""Only one of several state services scales, and never one whose lease another has taken over.

A service that is killed between a write and the record of it continues after its next start. The test reports the
workers' usage to a real broker.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from keelman.api.connect.v1.autoscale_pb2 import Autoscale
from keelman.api.connect.v1.operation_pb2 import OPERATION_KIND_SCALE, OPERATION_STATE_SUCCEEDED, Operation
from keelman.api.connect.v1.operation_service_pb2 import ListOperationsRequest
from keelman.api.connect.v1.worker_pb2 import WorkerMembership
from keelman.api.event.v1.report_pb2 import Report, WorkerReport, WorkerUsage
from keelman.kafka.feed import WORKER_REPORTS, ReportPublisher
from keelman.rpc.channels import channel
from keelman.rpc.times import to_duration
from keelman.runtime.supervise import Siblings
from keelman.state.database.failpoints import AUTOSCALING
from support.eventually import eventually
from support.state.service import Agent, Clients, StateProcess, free_range

pytestmark = pytest.mark.component
CLUSTER = "scaled"
QUICK = Autoscale(
    min_workers=1, max_workers=3, sample_period=to_duration(1), samples=2, cool_down=to_duration(2),
)  # fmt: skip
REPORT_SECONDS = 1.1


class Load:
    """Reports this processor use for all workers on a node."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.percent, self.agents = 0.0, list[Agent]()

    @contextlib.asynccontextmanager
    async def reported(self) -> AsyncIterator[None]:
        async with Siblings() as tasks:
            tasks.start(self._report())
            yield

    async def _report(self) -> None:
        loop = asyncio.get_running_loop()
        used, last = 0.0, loop.time()
        async with ReportPublisher(self._bootstrap, "test") as publisher:
            while True:
                used, last = used + (loop.time() - last) * self.percent / 100, loop.time()
                for spec in [w.spec.worker for a in self.agents for w in a.workloads.values() if w.spec.worker.port]:
                    worker, now = f"{spec.host}:{spec.port}", Timestamp()
                    now.GetCurrentTime()
                    about = WorkerReport(
                        worker_cluster=CLUSTER, worker_id=worker, membership=WorkerMembership(joined=True),
                        usage=WorkerUsage(cpu_time=to_duration(used)),
                    )  # fmt: skip
                    report = Report(time=now, reporter=worker, name=worker, worker=about)
                    publisher.publish(WORKER_REPORTS, worker, report.SerializeToString())
                await asyncio.sleep(REPORT_SECONDS)


@contextlib.asynccontextmanager
async def connected(state: StateProcess, load: Load) -> AsyncIterator[Clients]:
    """Clients of a state service, and a node of it whose workers are loaded."""
    async with channel(f"127.0.0.1:{state.port}") as connection:
        clients = Clients(connection)
        async with Agent(clients, "n1") as agent:
            load.agents = [agent]
            yield clients


async def create(clients: Clients, bootstrap: str) -> None:
    await clients.create_external("default", bootstrap)
    await clients.create_workers(CLUSTER, autoscale=QUICK)
    await clients.start_workers(CLUSTER)


async def steps(clients: Clients) -> list[Operation]:
    answer = await clients.operations.ListOperations(ListOperationsRequest(kind=OPERATION_KIND_SCALE))
    return list(answer.operations)


async def scaled(clients: Clients, *goals: str) -> None:
    """Waits until exactly these steps, the newest first, have succeeded."""

    async def are_done() -> bool:
        actual_steps = await steps(clients)
        return len(actual_steps) >= len(goals) and all(
            actual_step.state == OPERATION_STATE_SUCCEEDED for actual_step in actual_steps
        )

    try:
        await eventually(are_done, what=f"it is scaled to {goals[0]}")
    except AssertionError as late:
        raise AssertionError(await steps(clients), await clients.worker_cluster(CLUSTER)) from late
    assert [step.target.goal for step in await steps(clients)] == list(goals)


def test_each_point_has_a_case() -> None:
    assert AUTOSCALING == ("scale-written",)


async def test_a_step_goes_on_after_a_kill_behind_its_write(bootstrap: str, tmp_path: Path) -> None:
    armed, load = tmp_path / "armed", Load(bootstrap)
    state = StateProcess(tmp_path / "home", "--worker-ports", free_range(4))
    state.environment = {"KEELMAN_FAILPOINT": AUTOSCALING[0], "KEELMAN_FAILPOINT_FILE": str(armed)}
    await state.start()
    try:
        async with load.reported():
            async with connected(state, load) as clients:
                await create(clients, bootstrap)
                armed.write_text("0")
                load.percent = 95.0
                async with asyncio.timeout(300):
                    assert await state.child.wait() == -signal.SIGKILL, state.output[-2000:]
                load.percent = 50.0
            state.environment = {}
            await state.start()
            async with connected(state, load) as clients:
                await scaled(clients, "2 workers")
                worker_cluster = await clients.worker_cluster(CLUSTER)
                assert (worker_cluster.status.ready_workers, worker_cluster.status.scaling.former_workers) == (2, 1)
    finally:
        await state.end(signal.SIGKILL)


async def test_one_scales_and_one_that_was_overtaken_never(
    bootstrap: str, postgresql: Callable[[], str], tmp_path: Path
) -> None:
    """The leader is frozen for longer than its lease, and resumes while another service leads."""
    load = Load(bootstrap)
    flags = ("--database", postgresql(), "--worker-ports", free_range(4), "--key-file", str(tmp_path / "key"))
    first, second = StateProcess(tmp_path / "first", *flags), StateProcess(tmp_path / "second", *flags)
    await first.start()
    try:
        await eventually(lambda: "leads " in first.output, what="the first one leads")
        await second.start()
        async with load.reported(), connected(second, load) as clients:
            await create(clients, bootstrap)
            load.percent = 95.0
            await eventually(lambda: "former=1" in first.output, what="the first one scales")
            await scaled(clients, "2 workers")
            os.kill(first.child.pid, signal.SIGSTOP)
            await eventually(lambda: "leads " in second.output, what="the second one takes over")
            await scaled(clients, "3 workers", "2 workers")
            os.kill(first.child.pid, signal.SIGCONT)
            await eventually(lambda: "leads_no_more" in first.output, what="the former leader stops leading")
            load.percent = 5.0
            await scaled(clients, "2 workers", "3 workers", "2 workers")
            await scaled(clients, "1 worker", "2 workers", "3 workers", "2 workers")
            assert first.output.count(" scaling ") == 1, first.output
            assert second.output.count(" scaling ") == 3, second.output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(first.child.pid, signal.SIGCONT)
        await asyncio.gather(first.end(signal.SIGKILL), *([second.end(signal.SIGKILL)] if second.child else []))
