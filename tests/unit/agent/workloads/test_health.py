"""An agent's view of a running worker: its brokers are unreachable, and reachable again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from keelman.agent.step import StepGoal
from keelman.agent.workloads.health import HealthWatch
from keelman.agent.workloads.local import Local
from keelman.api.node.v1.workload_pb2 import Workload, WorkloadState, WorkloadStatus
from keelman.runtime.home import Home
from keelman.runtime.processes.children import Child, ChildRecord, Exit
from keelman.runtime.supervise import Siblings
from keelman.workers.reach_note import FILE, ReachNote

AWAY = ReachNote(os.getpid(), "BROKERS_UNREACHABLE", "no broker answers at b:1")
NO_SPARK = ReachNote(os.getpid(), "SPARK_UNREACHABLE", "no Spark service answers this worker")


def running(folder: Path) -> Local:
    record = ChildRecord("worker/demo/0", "u", 1, 0, (), pid=AWAY.pid)
    local = Local(record.name, folder, Workload(uid="u", generation=1), StepGoal.RUNNING, record)
    local.child = Child(folder, record, None)
    return local


def status(local: Local) -> WorkloadStatus:
    return local.status(draining=False)


@pytest.mark.parametrize("note", [AWAY, NO_SPARK])
async def test_what_a_worker_notes_of_its_reach_is_reported(tmp_path: Path, note: ReachNote) -> None:
    local, news = running(tmp_path), asyncio.Event()
    watch = HealthWatch(local, Home(tmp_path), news.set)
    async with asyncio.timeout(30), Siblings() as siblings:
        siblings.start(watch.run())
        note.write(tmp_path / FILE)
        await news.wait()
        reported_status = status(local)
        assert (reported_status.state, reported_status.reason) == (WorkloadState.WORKLOAD_STATE_STARTING, note.reason)
        assert reported_status.message == note.message
        news.clear()
        (tmp_path / FILE).unlink()
        await news.wait()
        assert (status(local).reason, status(local).message) == ("", "")


def test_a_process_that_ended_says_nothing_more_of_brokers(tmp_path: Path) -> None:
    local = running(tmp_path)
    assert local.note_reach(AWAY)
    assert not local.note_reach(AWAY), "that is no news"
    local.note_end(Exit(-9), "", 1.0, seen=True)
    assert status(local).reason == "EXITED"
    local.child = Child(tmp_path, ChildRecord("worker/demo/0", "u", 1, 1, (), pid=8), None)
    local.failed, local.reason, local.message = False, "", ""
    assert status(local).reason == ""


def test_why_a_worker_does_not_answer_comes_before_its_brokers(tmp_path: Path) -> None:
    local = running(tmp_path)
    local.note_health(True, 1.0)
    local.note_health(False, 2.0)
    local.note_reach(AWAY)
    assert status(local).reason == "UNHEALTHY"
