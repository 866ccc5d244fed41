"""A broker is removed even if it could not be started, and a failed removal is reported.

A process that an earlier agent started is left alone until its goal is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from keelman.agent.assignments import Assignments
from keelman.agent.plugins import NodePlugins
from keelman.agent.reporter import Reporter
from keelman.agent.settings import Settings
from keelman.agent.step import StepGoal
from keelman.agent.supervisor import Supervisor
from keelman.agent.trust.secrets import SecretFiles
from keelman.agent.workloads.launcher import Launcher
from keelman.agent.workloads.limits import WATCHDOG, Limiter, make_limiter
from keelman.agent.workloads.secured import HTTPS, commands_for
from keelman.agent.workloads.tenant_limits import SPARK_BYTES
from keelman.agent.workloads.turns import StartTurns
from keelman.api.node.v1.session_service_pb2 import Assignments as Message
from keelman.api.node.v1.workload_pb2 import (
    BrokerWorkload,
    ResourceLimits,
    WorkerWorkload,
    Workload,
    WorkloadGoal,
    WorkloadSpec,
    WorkloadState,
)
from keelman.model.workload import ResourceLimits as Limits
from keelman.runtime.home import Home
from keelman.runtime.processes.children import ChildRecord, write_record
from support.eventually import eventually

NAME = "broker/x/0"


def supervisor_of(home: Home, root: Path) -> Supervisor:
    """The workloads of an agent that has its files there, and the data of brokers below `root`."""
    settings = Settings()
    launcher = Launcher(
        home,
        commands_for(HTTPS, SecretFiles(home), root),
        grace_seconds=1.0,
        log_keeping=settings.log_keeping,
        surroundings=settings.surroundings,
        limiter=make_limiter(WATCHDOG, home),
        broker_data=root,
    )

    async def nothing(*_: object) -> None:
        raise AssertionError

    plugins = NodePlugins(home.plugins, nothing, kept_seconds=1)  # type: ignore[arg-type]
    return Supervisor(home, launcher, Assignments(home.assignments), Reporter(), plugins, turns=StartTurns(1))


@pytest.mark.parametrize("tls", [True, False], ids=["without a certificate", "not secured"])
async def test_a_broker_that_could_not_be_started_is_removed_with_its_data(tmp_path: Path, tls: bool) -> None:
    home, root = Home(tmp_path / "home"), tmp_path / "data"
    home.workload(NAME).mkdir(parents=True)
    (root / "x-0").mkdir(parents=True)
    (root / "other").mkdir()

    supervisor = supervisor_of(home, root)

    def assign(folder: str) -> None:
        broker = BrokerWorkload(broker_cluster="x", host="10.0.0.2", port=9092, tls=tls, data_folders=[folder])
        goal = WorkloadGoal.WORKLOAD_GOAL_REMOVED
        removed = Workload(name=NAME, uid="u", generation=1, goal=goal, spec=WorkloadSpec(broker=broker))
        supervisor.assign(Message(complete=True, workloads=[removed]))

    def status(state: WorkloadState.ValueType, text: str = "") -> bool:
        assert not running.done(), running.result()
        [workload] = supervisor.workloads()
        return workload.status.state == state and text in workload.status.message

    running = asyncio.ensure_future(supervisor.run())
    try:
        assign("/x-0/../other")
        stopped = WorkloadState.WORKLOAD_STATE_STOPPED
        await eventually(lambda: status(stopped, "remove failed: spec.broker.data_folders"), seconds=10)
        assign("/x-0")
        await eventually(lambda: status(WorkloadState.WORKLOAD_STATE_REMOVED), seconds=10)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [path.name for path in root.iterdir()] == ["other"]
    assert not home.workload(NAME).exists()


async def test_tenants_may_use_what_their_running_workers_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, shares = Home(tmp_path / "home"), list[Mapping[str, object]]()
    monkeypatch.setattr(Limiter, "share", lambda _, given: shares.append(given))
    supervisor = supervisor_of(home, tmp_path)

    def worker(name: str, tenant: str, goal: WorkloadGoal.ValueType) -> Workload:
        spec, limits = WorkerWorkload(worker_cluster="x", tenant=tenant), ResourceLimits(cpus=1.5, memory_bytes=2**30)
        return Workload(name=name, uid="u", generation=1, goal=goal, spec=WorkloadSpec(worker=spec), limits=limits)

    running, stopped = WorkloadGoal.WORKLOAD_GOAL_RUNNING, WorkloadGoal.WORKLOAD_GOAL_STOPPED
    workers = [
        worker("worker/x/0", "a", running),
        worker("worker/x/1", "a", running),
        worker("worker/x/2", "", running),
    ]
    supervisor.assign(Message(complete=True, workloads=[*workers, worker("worker/x/3", "b", stopped)]))
    await supervisor.limit_tenants()
    assert shares == [{"a": Limits(3.0, 2 * 2**30 + SPARK_BYTES)}]


def test_what_an_earlier_agent_started_is_stopped_only_once_all_assignments_have_come(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.workload(NAME).mkdir(parents=True)
    write_record(home.workload(NAME), ChildRecord(NAME, "u", 1, 0, ("true",)))
    supervisor = supervisor_of(home, tmp_path / "data")
    supervisor.adopt()
    local = supervisor._loops[NAME].local
    assert local.wanted().goal is StepGoal.UNTOUCHED
    supervisor.assign(Message(complete=False))
    assert local.wanted().goal is StepGoal.UNTOUCHED
    supervisor.assign(Message(complete=True))
    assert local.wanted().goal is StepGoal.STOPPED
