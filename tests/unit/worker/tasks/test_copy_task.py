"""A task's status tells its real state: parked is RUNNING, woken without a slot is not, and a cut is reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1.run_order_pb2 import BulkPart, RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connect.config.providers import ConfigProviderError
from keelman.connect.watches import FileWatch, Watch
from keelman.model.errors import NotFound
from keelman.model.work import Work
from keelman.runtime.supervise import Siblings
from keelman.worker.restart_policy import RestartPolicy
from keelman.worker.tasks.copy_task import WAIT_SECONDS, CopyTask
from keelman.worker.tasks.meters import Meters
from keelman.worker.tasks.start_queue import StartQueue
from keelman.worker.tasks.task_host import TaskHost
from support.eventually import eventually

RUNNING, ENDED = copy.COPY_RUN_STATE_RUNNING, copy.COPY_RUN_STATE_ENDED
FENCED = copy.COPY_RUN_STATE_FENCED


class World(TaskHost):
    """A task, the orders that it sent, and the statuses that it reported."""

    def __init__(self) -> None:
        self.sent: list[RunOrder] = []
        self.told: list[tuple[str, str]] = []
        self.more: Mapping[str, object] = {}
        self.leased, self.obeys, self.may, self.asked = True, True, True, 0
        self.problem: Exception | None = None
        self.refusal: Exception | None = None
        self.meters = Meters()
        self.rests: Watch | None = None
        self.left = 0
        self.gone: list[str] = []
        self.turns = StartQueue(1)
        me = cast(Any, self)
        self.task = CopyTask(Work("c", 0), me, me, self.report, grace_seconds=0.05, start_queue=self.turns)

    def ticket(self, uid: str) -> StartTicket | None:
        self.asked += 1
        if self.refusal is not None:
            raise self.refusal
        return StartTicket(run_uid=uid) if self.may else None

    def send(self, order: RunOrder) -> None:
        self.sent.append(order)
        if order.HasField("start"):
            self.task_runs(order.run_uid)
        elif self.obeys and (order.HasField("drain") or order.HasField("cut")):
            self.task.update(RunUpdate(run_uid=order.run_uid, state=ENDED, reason="DRAINED"))

    def task_runs(self, uid: str) -> None:
        asyncio.get_running_loop().call_soon(self.task.update, RunUpdate(run_uid=uid, state=RUNNING))

    def on_idle(self) -> None:
        if self.task.watch is not None and self.rests is not None:
            self.task.park([])

    def on_unpark(self) -> None:
        self.left += 1

    def report(self, state: str, trace: str | None, more: Mapping[str, object]) -> None:
        self.told.append((state, trace or ""))
        self.more = more

    async def confirm(self, part: bool) -> Any:
        if self.problem is not None:
            raise self.problem
        return ()

    def kind(self) -> str:
        return ""

    def resting(self) -> Watch | None:
        return self.rests

    def on_failure(self, update: RunUpdate) -> None:
        self.meters.note(Work("c", 0), update)

    def on_end(self, uid: str) -> None:
        self.gone.append(uid)

    async def fence(self) -> None:
        return None

    async def fence_parts(self, parts: int) -> bool:
        return True

    @property
    def closed(self) -> str:
        return "" if self.leased else "no Spark service answers this worker"

    @property
    def state(self) -> str:
        return self.told[-1][0]


@asynccontextmanager
async def at_work(world: World) -> AsyncIterator[World]:
    """Its task runs during the block, and is cut at its end."""
    async with Siblings() as siblings:
        life = siblings.start(world.task.run())
        yield world
        world.task.end(cut=True)
        world.obeys = True
        await life


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with at_work(World()) as opened:
        await eventually(lambda: opened.state == "RUNNING")
        yield opened


async def test_a_woken_task_without_a_copy_run_is_not_running(world: World) -> None:
    now = time.monotonic()
    world.task.park([])
    await eventually(lambda: any(order.HasField("drain") for order in world.sent))
    for seconds in (0, 100):
        world.task.judge(now + seconds, 60.0)
    assert world.state == "RUNNING", "parked: there is nothing to copy"
    world.leased = False
    world.task.wake()
    await asyncio.sleep(0)

    def waits() -> bool:
        world.task.judge(now + 200, 60.0)
        world.task.judge(now + 200 + WAIT_SECONDS, 60.0)
        return world.state == "RESTARTING"

    await eventually(waits)
    assert "waits for a copy run: no Spark service answers this worker" in world.told[-1][1]
    world.leased = True
    await eventually(lambda: world.state == "RUNNING")


async def test_what_a_running_task_waits_for_is_in_its_status_until_it_is_there(world: World) -> None:
    run = world.sent[0].run_uid
    for message, more in (("waits for the file f", {"waits_for": "waits for the file f"}), ("", {})):
        for _ in range(2):
            world.task.update(RunUpdate(run_uid=run, state=RUNNING, message=message))
            await eventually(lambda more=more: world.more == more)
    assert [state for state, _ in world.told].count("RUNNING") == 3, "each once"


async def test_what_waited_and_copied_a_moment_says_nothing_when_it_ends() -> None:
    world = World()
    world.leased = False
    async with Siblings() as siblings:
        life = siblings.start(world.task.run())
        await eventually(lambda: world.told)
        world.task.judge(time.monotonic(), 60.0)
        world.leased = True
        await eventually(lambda: world.state == "RUNNING")
        world.task.end()
        await life
    world.task.judge(time.monotonic() + WAIT_SECONDS, 60.0)
    world.task.judge(time.monotonic() + 2 * WAIT_SECONDS, 60.0)
    assert world.state == "RUNNING", "a status after its end would replace another worker's status, or a deleted one"


async def test_a_wait_is_counted_from_the_end_of_the_last_copy_run() -> None:
    world = World()
    world.leased = False
    async with at_work(world):
        await eventually(lambda: world.told)
        now = time.monotonic()
        world.task.judge(now, 60.0)
        world.leased = True
        await eventually(lambda: world.state == "RUNNING")
        world.leased, starts = False, len(world.sent)
        world.task.update(RunUpdate(run_uid=world.sent[0].run_uid, state=ENDED, reason="MOVED"))
        await eventually(lambda: world.gone)
        world.task.judge(now + WAIT_SECONDS, 60.0)
        assert (world.state, len(world.sent)) == ("RUNNING", starts)
        world.task.judge(now + 2 * WAIT_SECONDS, 60.0)
        assert world.state == "RESTARTING"


async def test_what_fails_again_and_again_and_commits_nothing_is_stalled_until_it_commits(world: World) -> None:
    """For example a target that is too slow: each failure passes by itself, and no record is ever copied."""

    def uid() -> str:
        return [order.run_uid for order in world.sent if order.HasField("start")][-1]

    def copied(records: int, lag: int) -> None:
        progress = copy.CopyProgress(records=records, lag=lag)
        world.task.update(RunUpdate(run_uid=uid(), state=RUNNING, progress=progress))

    async def fails() -> None:
        before = len(world.gone)
        failed = copy.COPY_RUN_STATE_FAILED
        world.task.update(
            RunUpdate(run_uid=uid(), state=failed, reason="BROKER_LOST", message="too slow", retriable=True)
        )
        await eventually(lambda: len(world.gone) > before and world.state == "RESTARTING")

    copied(0, 7)
    now = time.monotonic()
    await fails()
    world.task.judge(now + 50, 60.0)
    assert "stalled" not in world.more
    await eventually(lambda: world.state == "RUNNING")
    copied(0, 7)
    await fails()
    world.task.judge(now + 61, 60.0)
    assert world.state == "RESTARTING", "between two copy runs"
    stalled = world.more["stalled"]
    assert isinstance(stalled, dict)
    assert (stalled["left"], stalled["reason"]) == (7, "BROKER_LOST: too slow")
    await eventually(lambda: world.state == "RUNNING")
    assert "stalled" in world.more, "another copy run is no progress"
    copied(0, 7)
    world.task.judge(now + 62, 60.0)
    assert world.task.stalled
    copied(3, 4)
    world.task.judge(time.monotonic(), 60.0)
    assert (world.task.stalled, dict(world.more)) == (False, {})


async def test_a_failure_before_the_first_copy_run_is_counted() -> None:
    async with Siblings() as siblings:
        world = World()
        world.refusal = NotFound("no connector class com.example.Gone")
        life = siblings.start(world.task.run())
        await eventually(lambda: world.state == "FAILED")
        meter = world.meters.find(Work("c", 0))
        assert meter is not None
        assert (meter.failures, meter.runs, meter.live) == (1, 0, False)
        world.task.end()
        await life


async def test_a_task_that_never_had_a_copy_run_says_what_it_waits_for() -> None:
    world = World()
    world.leased = False
    assert world.turns.take("", "another", lambda: None)
    async with at_work(world):
        now = time.monotonic()

        def waited(seconds: float) -> tuple[str, str]:
            world.task.judge(now + seconds, 60.0)
            world.task.judge(now + seconds + WAIT_SECONDS, 60.0)
            return world.told[-1]

        await eventually(lambda: world.told)
        assert waited(10) == ("UNASSIGNED", ""), "it waits for its turn, as thousands may"
        world.turns.give("another")
        await eventually(lambda: "no Spark service answers this worker" in waited(100)[1])
        assert world.state == "UNASSIGNED"
        count = len(world.told)
        waited(200)
        assert len(world.told) == count, "once"
        world.leased = True
        await eventually(lambda: world.state == "RUNNING")
        assert world.told[-1][1] == ""


async def test_one_that_would_wait_behind_others_rests_on_its_watch_and_comes_first_once_there_is_more() -> None:
    world = World()
    world.rests = FileWatch("/the/file", 7, 1)
    assert world.turns.take("", "another", lambda: None)
    async with at_work(world):
        await eventually(lambda: world.task.parked)
        assert (world.state, world.asked, world.sent) == ("RUNNING", 0, []), "no ticket, no copy run"
        called: list[int] = []
        assert not world.turns.take("", "a third", lambda: called.append(len(world.sent)))
        world.task.wake()
        await eventually(lambda: world.left == 1)
        world.turns.give("another")
        await eventually(lambda: called)
        assert called == [1], "its copy run had begun before"

        world.task.restart()  # a user who restarts it must see the effect
        await eventually(lambda: world.sent[-1].HasField("drain"))
        await asyncio.sleep(0)
        assert not world.task.parked
        world.turns.give("a third")
        await eventually(lambda: sum(order.HasField("start") for order in world.sent) == 2)


async def test_one_that_has_its_turn_does_not_rest() -> None:
    world = World()
    world.rests = FileWatch("/the/file", 7, 1)
    async with at_work(world):
        await eventually(lambda: world.sent)
        assert not world.task.parked


async def test_one_that_rests_is_paused_and_ended_like_any_other() -> None:
    async with Siblings() as siblings:
        world = World()
        world.rests = FileWatch("/the/file", 7, 1)
        assert world.turns.take("", "another", lambda: None)
        life = siblings.start(world.task.run())
        await eventually(lambda: world.task.parked)
        world.task.pause()
        await eventually(lambda: world.state == "PAUSED")
        assert (world.task.parked, world.left) == (False, 1)
        world.task.end()
        await life
        assert world.sent == []


async def test_no_ticket_is_made_for_a_task_that_waits_behind_others(world: World) -> None:
    before = world.asked
    assert world.turns.take("", "another", lambda: None)
    world.task.restart()
    await eventually(lambda: not world.turns.take("", "a third", lambda: None))
    await eventually(lambda: world.sent[-1].HasField("drain"))
    await asyncio.sleep(0)
    assert world.asked == before
    world.turns.give("another")
    world.turns.give("a third")
    await eventually(lambda: world.asked > before)


async def test_one_that_is_refused_a_ticket_lets_others_by_and_asks_again(world: World) -> None:
    world.may, before = False, world.asked
    world.task.restart()
    await eventually(lambda: world.asked >= before + 2)
    assert world.turns.take("", "another", lambda: None)
    world.turns.give("another")
    world.may, sent = True, len(world.sent)
    await eventually(lambda: any(order.HasField("start") for order in world.sent[sent:]))


async def test_a_task_that_does_not_stop_in_time_is_cut_and_says_so(world: World) -> None:
    world.obeys = False
    world.task.pause()
    await eventually(lambda: world.state == "PAUSED")
    assert [order.WhichOneof("order") for order in world.sent] == ["start", "drain", "cut"]
    assert world.told[-1][1].endswith("ConnectException: stop: the task did not end within 0.05 s and was cut\n")
    world.task.resume()
    await eventually(lambda: world.state == "RUNNING")
    world.obeys = True
    world.task.pause()
    await eventually(lambda: world.told[-1] == ("PAUSED", ""))


async def test_a_secret_that_cannot_be_read_withdraws_the_ticket(world: World) -> None:
    world.problem = ConfigProviderError("no such file")
    world.task.update(RunUpdate(run_uid=world.sent[0].run_uid, state=FENCED))
    await eventually(lambda: world.state == "RESTARTING")
    assert [order.cut.reason for order in world.sent if order.HasField("cut")] == ["WITHDRAWN"]


async def test_after_a_fault_of_ours_no_copy_run_stays_in_its_slot(world: World) -> None:
    uid = world.sent[0].run_uid
    world.task.update(RunUpdate(run_uid=uid, state=RUNNING, parts=[BulkPart()]))
    await eventually(lambda: world.sent[-1].run_uid != uid, what="a part is begun")
    world.problem = RuntimeError("a fault")
    world.task.update(RunUpdate(run_uid=uid, state=FENCED))
    await eventually(lambda: world.state in ("FAILED", "RESTARTING"))
    orders = [(order.run_uid == uid, order.WhichOneof("order")) for order in world.sent if not order.HasField("limits")]
    assert orders == [(True, "start"), (False, "start"), (True, "cut"), (False, "drain")]


async def test_a_failed_task_that_is_paused_tells_of_no_restart_before_it_is_resumed(world: World) -> None:
    world.task.follow_policy(RestartPolicy(attempts=5, first_seconds=3600, most_seconds=3600))
    failed = copy.COPY_RUN_STATE_FAILED
    world.task.update(RunUpdate(run_uid=world.sent[-1].run_uid, state=failed, reason="TASK_FAILED", message="full"))
    await eventually(lambda: world.state == "FAILED")
    assert "Next automatic restart (1st of 5) at 2" in world.told[-1][1]
    assert world.more["restart"].keys() == {"reason", "attempt", "max_attempts", "next"}  # type: ignore[attr-defined]
    world.task.pause()
    await eventually(lambda: "next" not in world.more["restart"])  # type: ignore[operator]
    assert world.told[-1][0] == "FAILED"
    assert world.told[-1][1].endswith("Next automatic restart (1st of 5) when it is resumed: TASK_FAILED\n")
    world.task.resume()
    await eventually(lambda: world.state == "RUNNING")


@pytest.mark.parametrize(("reason", "passes"), [("BROKER_LOST", True), ("TASK_FAILED", False)])
async def test_what_fails_again_and_again_says_so_until_it_commits(world: World, reason: str, passes: bool) -> None:
    def starts() -> list[str]:
        return [order.run_uid for order in world.sent if order.HasField("start")]

    for count in (1, 2):
        before, failed = starts(), copy.COPY_RUN_STATE_FAILED
        world.task.update(RunUpdate(run_uid=before[-1], state=failed, reason=reason, message="away", retriable=passes))
        await eventually(lambda before=before: starts() != before and world.state == "RUNNING")
        assert ("failures" in world.more) == (count > 1)
    assert world.more["failures"] == {"count": 2, "reason": f"{reason}: away"}
    progress = copy.CopyProgress(records=5, lag=0, lag_unit=copy.LAG_UNIT_BYTES)
    world.task.update(RunUpdate(run_uid=starts()[-1], state=RUNNING, progress=progress))
    world.task.judge(time.monotonic(), 60.0)
    assert "failures" not in world.more
