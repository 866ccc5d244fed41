"""Spark services on a standalone cluster of two workers: Spark's own programs, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.runtime.processes.ports import free_ports
from keelman.workers.reach_note import ReachNote
from support.eventually import eventually
from support.spark.cluster import Cluster
from support.spark.links import Spark, Worker, worker

pytestmark = [pytest.mark.component, pytest.mark.slow]
FENCED, PENDING, FAILED = states.COPY_RUN_STATE_FENCED, states.COPY_RUN_STATE_PENDING, states.COPY_RUN_STATE_FAILED
STANDS_STILL_SECONDS = 60.0  # on a busy machine; without another session it would be for ever
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

    await eventually(told, what=f"{uid} waits: {reason}; {linked.spark.text()[-2000:]}")


def reason_in(note: Path, service: Spark) -> str:
    """The reason that the agent would read."""
    read = ReachNote.read(note, service.process.pid)
    return "" if read is None else read.reason


@contextlib.asynccontextmanager
async def copying(linked: Worker, folder: Path) -> AsyncIterator[list[str]]:
    """A task that copies, with another copy run after each that fails, as a worker does it."""
    uids: list[str] = []

    async def copy() -> None:
        while True:
            uids.append(uid := linked.start(folder))
            await linked.reached(uid, FENCED, seconds=500)
            linked.confirm(uid)
            await linked.reached(uid, FAILED, seconds=500)

    task = asyncio.create_task(copy())
    try:
        await eventually(lambda: uids and (folder / uids[0]).exists(), what="it copies")
        yield uids
    finally:
        task.cancel()


def times(folder: Path, uids: list[str]) -> list[float]:
    """When each line was written, by all copy runs of the task."""
    files = [folder / uid for uid in uids if (folder / uid).exists()]
    return sorted(float(line) for file in files for line in file.read_text().split())


async def stands_still(folder: Path, uids: list[str], since: float) -> float:
    """Waits until another copy run than the first copies; for how many seconds none did, after `since`."""
    await eventually(lambda: any((folder / uid).exists() for uid in uids[1:]), what="it copies again")
    at = times(folder, uids)
    return max(later - max(earlier, since) for earlier, later in pairwise(at) if later > since)


async def test_slots_start_again_after_the_master_was_killed_and_started_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with (
        service(cluster, "a", slots_per_worker=1, warm_slots="false") as a,
        worker(a, "one:8083") as one,
        copying(one, tmp_path) as uids,
    ):
        cluster.end("master")
        away = float(os.environ.get("MASTER_AWAY_SECONDS", "2"))
        back = time.monotonic() + away
        lines = len(times(tmp_path, uids))
        await eventually(lambda: time.monotonic() > back and len(times(tmp_path, uids)) > lines, seconds=away + 60)
        await cluster.begin_master()
        seconds = await stands_still(tmp_path, uids, time.time())
        print(f"away for {away:g} s; stood still for {seconds:.1f} s after it was back")
        assert seconds < STANDS_STILL_SECONDS, a.text()
        assert "its master was away, and no slot is left" in a.text()


async def test_another_session_follows_an_application_that_was_killed_in_the_masters_page(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with (
        service(cluster, "a", slots_per_worker=1, warm_slots="false") as a,
        worker(a, "one:8083") as one,
        copying(one, tmp_path) as uids,
    ):
        async with httpx.AsyncClient(base_url=cluster.page()) as client:
            page = (await client.get("/")).text
            form = re.search(r'<form[^>]*action="app/kill/".*?</form>', page, re.DOTALL)
            assert form is not None, page
            inputs = re.findall(r"<input[^>]*>", form[0])
            fields = {_attribute(i, "name"): _attribute(i, "value") for i in inputs}
            answer = await client.post("/app/kill/", data=fields)
        assert answer.status_code in (200, 302), (page, answer.text)
        seconds = await stands_still(tmp_path, uids, time.time())
        print(f"stood still for {seconds:.1f} s after its application was killed")
        assert seconds < STANDS_STILL_SECONDS, a.text()


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    return found[1] if found else ""


async def test_a_service_waits_for_a_master_that_is_away_and_ends_at_once(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, free_ports(1)[0])
    note = tmp_path / "note.json"
    async with service(cluster, "a", reach_file=note) as a, worker(a, "one:8083") as one:
        await eventually(lambda: one.problems and "SPARK_LOST: the Spark master does not answer" in one.problems[-1])
        await eventually(lambda: reason_in(note, a) == "SPARK_LOST")
        begun = time.monotonic()
        a.process.terminate()
        await asyncio.to_thread(a.process.wait, 30)
        assert time.monotonic() - begun < 10
