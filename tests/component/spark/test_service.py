"""The Spark service as a real process, with real Spark jobs for slots; only the task loop inside is a test's."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.copy_run_service_pb2 import ListCopyRunsRequest, WatchCopyRunsRequest
from keelman.api.copy.v1.copy_run_service_pb2_grpc import CopyRunServiceStub
from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, SlotGreeting
from keelman.api.copy.v1.slot_service_pb2_grpc import SlotServiceStub
from keelman.api.copy.v1.worker_link_service_pb2 import OpenLinkRequest, WorkerGreeting
from keelman.api.copy.v1.worker_link_service_pb2_grpc import WorkerLinkServiceStub
from keelman.model.errors import Conflict, Unauthenticated
from keelman.rpc.channels import channel
from keelman.rpc.errors import translated
from support.eventually import eventually
from support.spark.links import Spark, Worker, worker

pytestmark = pytest.mark.component
RUNNING, ENDED, FAILED = states.COPY_RUN_STATE_RUNNING, states.COPY_RUN_STATE_ENDED, states.COPY_RUN_STATE_FAILED


@pytest_asyncio.fixture(scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[Spark]]:
    """The services that were started, one after the other."""
    sparks: list[Spark] = []
    try:
        yield sparks
    finally:
        for service in sparks:
            service.kill()


async def serving(services: list[Spark], tmp_path_factory: pytest.TempPathFactory) -> Spark:
    """A Spark service that serves: the last, unless that has ended."""
    if not services or services[-1].process.poll() is not None:
        services.append(Spark(tmp_path_factory.mktemp("spark"), lease_seconds=6))
        await services[-1].serving()
    return services[-1]


@pytest_asyncio.fixture
async def spark(services: list[Spark], tmp_path_factory: pytest.TempPathFactory) -> Spark:
    return await serving(services, tmp_path_factory)


@pytest_asyncio.fixture
async def spark_worker(spark: Spark, request: pytest.FixtureRequest) -> AsyncIterator[Worker]:
    """A worker of the test's own, which has slots of its own."""
    async with worker(spark, f"{request.node.name}:8083") as started_worker:
        yield started_worker


@pytest_asyncio.fixture(scope="module")
async def steady(services: list[Spark], tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Worker]:
    """A worker for tests that do not damage its slots: each new slot takes a second or two."""
    async with worker(await serving(services, tmp_path_factory), "steady:8083") as started_worker:
        yield started_worker


async def grows(file: Path) -> None:
    size = file.stat().st_size if file.exists() else 0
    await eventually(lambda: file.exists() and file.stat().st_size > size, what=f"{file.name} grows")


async def answer_to(call: Any, message: object) -> object:
    with translated():
        await call.write(message)
        return await call.read()


def times(file: Path) -> list[float]:
    return [float(line) for line in file.read_text().split()]


async def test_a_run_goes_from_ticket_to_drain(steady: Worker, tmp_path: Path) -> None:
    uid = await steady.running(tmp_path)
    await grows(tmp_path / uid)
    steady.drain(uid)
    ended = await steady.reached(uid, ENDED)
    assert ended.reason == "DRAINED"
    assert ended.progress.records == len(times(tmp_path / uid))
    states = [u.state for u in steady.updates if u.run_uid == uid]
    assert states == sorted(states), "states only move forward"
    assert (await steady.get(uid)).progress.records == ended.progress.records
    assert steady.renewed > 0


async def test_runs_spread_over_the_workers_slots_and_a_cut_ends_one_only(spark_worker: Worker, tmp_path: Path) -> None:
    first, second, third = [await spark_worker.running(tmp_path) for _ in range(3)]
    slots = [spark_worker.slot_of(uid) for uid in (first, second, third)]
    assert slots[0] != slots[1]
    assert slots[2] in slots[:2]
    spark_worker.cut(second)
    assert (await spark_worker.reached(second, ENDED)).reason == "WITHDRAWN"
    await grows(tmp_path / first)
    await grows(tmp_path / third)


async def test_usage_is_told_with_each_renewal_and_counts_slots_that_are_gone(
    spark_worker: Worker, tmp_path: Path
) -> None:
    uid = await spark_worker.running(tmp_path)
    used = await eventually(lambda: spark_worker.usage if spark_worker.usage.cpu_time.ToMilliseconds() > 20 else None)
    assert used is not None
    assert used.slots >= 1
    assert 10_000_000 < used.memory_bytes < 1_000_000_000
    spark_worker.slot_process(uid).kill()
    await spark_worker.reached(uid, FAILED)
    seen = spark_worker.renewed
    await eventually(lambda: spark_worker.renewed > seen + 1)
    assert spark_worker.usage.cpu_time.ToNanoseconds() >= used.cpu_time.ToNanoseconds()


async def test_levels_of_logging_that_are_set_on_a_worker_reach_its_slots(steady: Worker, tmp_path: Path) -> None:
    uid = await steady.running(tmp_path)
    await grows(tmp_path / uid)
    assert "counted" not in steady.spark.text()
    steady.log_levels = {"root": "ERROR", "support.spark": "DEBUG"}

    def counted() -> list[str]:
        return [line for line in steady.spark.text().splitlines() if "counted" in line and uid in line]

    await eventually(counted, what="the slot logs more")
    steady.log_levels = {"root": "ERROR", "support.spark": "INFO"}

    async def quiet() -> bool:
        before = len(counted())
        await grows(tmp_path / uid)
        return len(counted()) == before

    await eventually(quiet, what="the slot logs less")


async def test_plugins_have_slots_of_their_own_where_their_modules_are_found(
    spark_worker: Worker, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin"
    (plugin / "acme-1.0.dist-info").mkdir(parents=True)
    (plugin / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (plugin / "acme-1.0.dist-info" / "entry_points.txt").write_text(
        "[keelman.connectors]\ncom.acme.Source = acme:Source\n"
    )
    (plugin / "acme.py").write_text("")
    first = await spark_worker.running(tmp_path, plugin=plugin, module="acme")
    second = await spark_worker.running(tmp_path, plugin=plugin, module="acme")
    shared = await spark_worker.running(tmp_path)
    assert len({spark_worker.slot_of(uid) for uid in (first, second, shared)}) == 3
    failed = await spark_worker.reached(spark_worker.start(tmp_path, module="acme"), FAILED)
    assert "acme" in failed.message
    missing = spark_worker.start(tmp_path, plugin=tmp_path / "none")
    await eventually(lambda: any(u.run_uid == missing and "does not exist" in u.message for u in spark_worker.updates))


async def test_a_busy_run_gets_a_slot_of_its_own(spark_worker: Worker, tmp_path: Path) -> None:
    uids = [await spark_worker.running(tmp_path, mode="busy", connector=f"busy-{n}") for n in range(3)]
    before = {spark_worker.slot_of(uid) for uid in uids}
    assert len(before) == 2
    moved = await eventually(lambda: next((u for u in spark_worker.updates if u.reason == "MOVED"), None))
    assert moved is not None
    assert (moved.state, moved.run_uid in uids) == (ENDED, True)
    again = await spark_worker.running(tmp_path, mode="busy", connector=f"busy-{uids.index(moved.run_uid)}")
    assert spark_worker.slot_of(again) not in before
    await grows(tmp_path / again)


async def test_a_loop_that_cannot_start_fails_its_run_and_nothing_else(steady: Worker, tmp_path: Path) -> None:
    good = await steady.running(tmp_path)
    failed = await steady.reached(steady.start(tmp_path, mode="refuse"), FAILED)
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    assert "a path" in failed.message
    assert "ValueError" in failed.trace
    await grows(tmp_path / good)


async def test_a_burst_of_progress_loses_no_state_and_the_newest_wins(steady: Worker, tmp_path: Path) -> None:
    uid = await steady.running(tmp_path, mode="burst")
    steady.drain(uid)
    ended = await steady.reached(uid, ENDED)
    updates = [u for u in steady.updates if u.run_uid == uid]
    assert ended.progress.records >= 199_999
    assert len(updates) < 20_000, "progress is thinned out on its way"


async def test_a_wrong_or_used_token_is_refused(spark: Spark, steady: Worker, tmp_path: Path) -> None:
    uid = await steady.running(tmp_path)
    slot = next(u.slot for u in reversed(steady.updates) if u.run_uid == uid)
    async with channel(spark.address) as home:
        for name in (slot, "slot-none"):
            call = SlotServiceStub(home).Attach()
            with pytest.raises(Unauthenticated):
                await answer_to(call, AttachRequest(greeting=SlotGreeting(slot=name, token="guessed")))
    await grows(tmp_path / uid)


async def test_a_killed_slot_fails_its_runs_at_once_and_a_new_one_works(spark_worker: Worker, tmp_path: Path) -> None:
    uid = await spark_worker.running(tmp_path)
    spark_worker.slot_process(uid).kill()
    lost = await spark_worker.reached(uid, FAILED)
    assert (lost.reason, lost.retriable) == ("SLOT_LOST", True)
    assert "no beat" not in lost.message, "at once: it was not waited for"
    again = await spark_worker.running(tmp_path)
    await grows(tmp_path / again)


async def test_a_frozen_slot_is_given_up_and_commits_nothing_more(spark_worker: Worker, tmp_path: Path) -> None:
    uid = await spark_worker.running(tmp_path)
    await grows(tmp_path / uid)
    process = spark_worker.slot_process(uid)
    process.suspend()
    stopped = time.time()
    lost = await spark_worker.reached(uid, FAILED)
    assert (lost.reason, lost.retriable) == ("SLOT_LOST", True)
    assert "no beat" in lost.message
    await eventually(lambda: not process.is_running(), what="Spark ends the frozen process")
    assert max(times(tmp_path / uid)) <= stopped + 0.5


async def test_a_silent_loop_gets_its_slot_recycled(spark_worker: Worker, tmp_path: Path) -> None:
    uid = await spark_worker.running(tmp_path, mode="silent")
    lost = await spark_worker.reached(uid, FAILED)
    assert (lost.reason, lost.retriable) == ("SLOT_LOST", True)
    # It reports 99 s itself; no loop is silent for longer than its process has been awake.
    assert re.search(r"Sleeper.read \(sea.py:7\) has not come back for \d\d s", lost.message), lost.message


async def test_a_lapsed_lease_cuts_the_runs_though_the_link_is_open(spark_worker: Worker, tmp_path: Path) -> None:
    uid = await spark_worker.running(tmp_path)
    process = spark_worker.slot_process(uid)
    spark_worker.renewing = False
    lapsed = await spark_worker.reached(uid, FAILED)
    assert (lapsed.reason, lapsed.retriable) == ("LEASE_LAPSED", True)
    await eventually(lambda: not process.is_running(), what="the slot has ended")
    refused = await spark_worker.reached(spark_worker.start(tmp_path), FAILED)
    assert refused.reason == "LEASE_LAPSED"
    spark_worker.renewing, renewed = True, spark_worker.renewed
    await eventually(lambda: spark_worker.renewed > renewed, what="the lease is renewed")
    await spark_worker.running(tmp_path)


async def test_links_take_over_or_cut(spark: Spark, tmp_path: Path) -> None:
    async with worker(spark, "takeover:8083", "a") as first:
        uid = await first.running(tmp_path)
        process = first.slot_process(uid)
    async with worker(spark, "takeover:8083", "a") as same:
        assert same.welcome is not None
        assert [u.run_uid for u in same.welcome.runs] == [uid]
        await grows(tmp_path / uid)
        async with worker(spark, "takeover:8083", "b") as other:
            assert other.welcome is not None
            assert not other.welcome.runs
            written = (tmp_path / uid).stat().st_size
            assert (await other.get(uid)).reason == "SUPERSEDED"
            await other.running(tmp_path)
            await eventually(lambda: not process.is_running(), what="the old slot's process ends")
            assert (tmp_path / uid).stat().st_size == written, "nothing of the old one writes once the new is welcomed"
    async with channel(spark.address) as link:
        call = WorkerLinkServiceStub(link).OpenLink()
        greeting = WorkerGreeting(worker_cluster="wc", worker_id="takeover:8083", incarnation="a")
        with pytest.raises(Conflict):
            await answer_to(call, OpenLinkRequest(greeting=greeting))


async def test_copy_runs_are_listed_and_watched(spark: Spark, steady: Worker, tmp_path: Path) -> None:
    async with channel(spark.address) as link:
        runs = CopyRunServiceStub(link)
        watch = runs.WatchCopyRuns(WatchCopyRunsRequest(worker_cluster="wc"))
        assert (await watch.read()).snapshot
        uid = await steady.running(tmp_path)

        async def seen() -> bool:
            return any(r.uid == uid and r.state == RUNNING for r in (await watch.read()).copy_runs)

        await eventually(seen, every=0)
        steady.drain(uid)
        await steady.reached(uid, ENDED)
        live = await runs.ListCopyRuns(ListCopyRunsRequest())
        every = await runs.ListCopyRuns(ListCopyRunsRequest(include_ended=True))
        assert uid not in [r.uid for r in live.copy_runs]
        assert uid in [r.uid for r in every.copy_runs]


async def test_an_unknown_run_is_answered(steady: Worker) -> None:
    steady.drain("run-of-an-earlier-life")
    answer = await steady.reached("run-of-an-earlier-life", FAILED)
    assert (answer.reason, answer.retriable) == ("UNKNOWN_RUN", True)


async def test_a_killed_service_takes_everything_with_it(spark: Spark, tmp_path: Path) -> None:
    async with worker(spark, "python:8083") as single_worker:
        uid = await single_worker.running(tmp_path)
        spark.kill()
        await spark.nothing_left(60)
        assert time.time() - max(times(tmp_path / uid)) < 60


async def test_a_killed_jvm_is_started_again_under_the_same_service_and_sigterm_drains_that(
    spark: Spark, tmp_path: Path
) -> None:
    async with worker(spark, "jvm:8083") as single_worker:
        uid = await single_worker.running(tmp_path)
        slot, lost = single_worker.slot_process(uid), spark.jvm()
        lost.kill()
        assert (await single_worker.reached(uid, FAILED)).reason == "SLOT_LOST"
        again = await single_worker.running(tmp_path)
        await grows(tmp_path / again)
        await eventually(lambda: not slot.is_running(), what="it goes with its JVM")
        assert spark.jvm() != lost
        assert "spark_lost" in spark.text()
        assert f"SPARK_LOST: Spark's JVM (pid {lost.pid}) ended: exit code -9" in single_worker.problems, (
            "the worker got a notice"
        )
        await eventually(lambda: single_worker.problems[-1] == "", what="and that it is over")
        spark.below()
        spark.process.send_signal(signal.SIGTERM)
        assert (await single_worker.reached(again, ENDED)).reason == "DRAINED"
    await eventually(lambda: spark.process.poll() is not None, what="the service ends")
    assert spark.process.returncode == 0, spark.text()
    await spark.nothing_left(60)
    assert "Traceback" not in spark.text(), spark.text().partition("Traceback")[2][:4000]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--port", "{taken}"], "spark.port: {taken} on 127.0.0.1 is taken"),
        (["--master", "yarn"], "spark.master: 'yarn' is not legal: local[n,1]"),
        (["--max-slots", "0"], "spark.max_slots: '0' is not legal: 1 to 250"),
        (["--host", "0.0.0.0"], "spark.host: '0.0.0.0' is not legal: a loopback address"),
    ],
)
def test_a_wrong_setting_is_told_at_once(flags: list[str], message: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [word.format(taken=port) for word in flags]
        command = [sys.executable, "-m", "keelman.spark", "run", "--work-folder", str(tmp_path / "work"), *words]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode in (1, 2)
    assert message.format(taken=port) in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "work").exists()
