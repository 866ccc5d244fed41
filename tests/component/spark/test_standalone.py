"""Spark services on a standalone cluster of two workers: Spark's own programs, on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.runtime.processes.ports import free_ports
from keelman.workers.reach_note import ReachNote
from support.eventually import eventually
from support.spark.cluster import Cluster
from support.spark.links import Spark, Worker, worker

pytestmark = [pytest.mark.component, pytest.mark.slow, pytest.mark.timeout(600)]
FENCED, PENDING = states.COPY_RUN_STATE_FENCED, states.COPY_RUN_STATE_PENDING
CORES = 4


@pytest_asyncio.fixture
async def master(tmp_path: Path) -> AsyncIterator[Cluster]:
    """A master without workers."""
    new_cluster = Cluster(tmp_path, free_ports(1)[0])
    try:
        await new_cluster.start(workers=0, cores=CORES)
        yield new_cluster
    finally:
        new_cluster.stop()


@pytest_asyncio.fixture
async def cluster(master: Cluster) -> Cluster:
    """A master and two workers of four cores."""
    for name in ("worker-0", "worker-1"):
        master.work(name, cores=CORES)
    return master


@contextlib.asynccontextmanager
async def service(cluster: Cluster, name: str, **flags: object) -> AsyncIterator[Spark]:
    """A Spark service on the cluster, which serves."""
    folder = cluster.folder / name
    folder.mkdir()
    started = Spark(folder, master=cluster.master, **flags)
    try:
        await started.serving()
        yield started
    finally:
        started.kill()
        await started.nothing_left()


async def test_two_services_on_one_master_both_get_cores(cluster: Cluster, tmp_path: Path) -> None:
    async with service(cluster, "a") as a, worker(a, "a:8083") as on_a:
        uids = [await on_a.running(tmp_path) for _ in range(4)]
        async with service(cluster, "b") as b, worker(b, "b:8083") as on_b:
            uids = [*uids, *[await on_b.running(tmp_path) for _ in range(4)]]
            assert len(cluster.executors()) >= 2
            sizes = {uid: (tmp_path / uid).stat().st_size for uid in uids}
            await eventually(lambda: all((tmp_path / uid).stat().st_size > sizes[uid] for uid in uids))


async def test_slots_that_wait_have_the_reason_with_its_figures(master: Cluster, tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    async with (
        service(master, "a", slots_per_worker=1, executor_cores=1, warm_slots="false", reach_file=note) as a,
        worker(a, "one:8083") as one,
        worker(a, "two:8083") as two,
    ):
        first = one.start(tmp_path)
        await waits(one, first, "NO_EXECUTORS", "0 of 1 cores")
        await eventually(lambda: "NO_EXECUTORS" in one.problems[-1], what="its worker gives its tasks back")
        await eventually(lambda: reason_in(note, a) == "NO_EXECUTORS", what="its agent knows")
        master.work("worker-0", cores=1)
        await one.reached(first, FENCED)
        second = two.start(tmp_path)
        await waits(two, second, "WAITING_FOR_CORES", "1 of 2 cores")
        assert one.problems[-1] == "", "workers whose slots run keep their tasks"
        await eventually(lambda: reason_in(note, a) == "WAITING_FOR_CORES", what="its agent knows")
        master.work("worker-1", cores=1)
        await two.reached(second, FENCED)
        await eventually(lambda: not note.exists(), what="the note is gone")


async def waits(linked: Worker, uid: str, reason: str, text: str) -> None:
    """Waits until the copy run waits for this reason."""

    async def told() -> bool:
        run = await linked.get(uid)
        return (run.state, run.reason) == (PENDING, reason) and run.message.startswith(text)

    await eventually(told, seconds=90, what=f"{uid} waits: {reason}; {linked.spark.text()[-2000:]}")


def reason_in(note: Path, service: Spark) -> str:
    """The reason that the agent would read."""
    read = ReachNote.read(note, service.process.pid)
    return "" if read is None else read.reason
