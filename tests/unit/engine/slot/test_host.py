"""The slot's own parts: its right to act, the queue of its updates, and the reports made of them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.copy_run_pb2 import CopyRun
from keelman.api.copy.v1.run_order_pb2 import Cut, Drain, RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import Limits, StartTicket
from keelman.api.event.v1.report_pb2 import Report
from keelman.engine.control import Control
from keelman.engine.slot.host import MAX_REST_SECONDS, CpuShare, SlotLease, Standstill
from keelman.engine.slot.loops import OPENING_AT_ONCE, OPENING_SECONDS, Loops
from keelman.engine.slot.updates import UpdateQueue
from keelman.spark.copy_runs.reports import CopyRunReporter

RUNNING, ENDED = states.COPY_RUN_STATE_RUNNING, states.COPY_RUN_STATE_ENDED


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_slot_may_act_while_it_is_awake_and_hears_its_home() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    for _ in range(20):
        clock.now += 1
        lease.tick()
        lease.heard()
        assert lease.allowed()


def test_a_home_not_heard_ends_the_right_to_act() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    for _ in range(5):
        clock.now += 1
        lease.tick()
    assert not lease.allowed()
    assert "no beat" in lease.lost


def test_beats_that_waited_in_the_socket_do_not_wake_a_frozen_slot() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    clock.now += 6
    lease.heard()
    lease.tick()
    assert not lease.allowed()
    assert "frozen" in lease.lost


def test_a_blocked_event_loop_ends_the_right_to_act_too() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    for _ in range(5):
        clock.now += 1
        lease.heard()
    assert not lease.allowed()


def test_an_announced_standstill_is_no_reason_to_end_and_counts_to_its_end_only() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    lease.excuse(60)
    clock.now += 50
    assert lease.allowed()
    assert lease.excused_seconds == 10
    lease.resume()
    assert lease.excused_seconds == 0
    clock.now += 3
    assert lease.allowed(), "ticks and beats count from its end"
    clock.now += 2
    assert not lease.allowed()


def test_a_standstill_that_is_longer_than_announced_ends_the_right_to_act() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    lease.excuse(60)
    clock.now += 61
    lease.resume()
    assert not lease.allowed()
    lease.excuse(60)
    assert not lease.allowed(), "once lost it stays so"


async def test_the_home_hears_of_a_standstill_before_it_begins() -> None:
    lease = SlotLease(4.0, Clock())
    times: list[float] = []

    async def beat() -> None:
        times.append(lease.excused_seconds)

    announcer = Standstill(lease, beat)
    await asyncio.to_thread(announcer.begin, 60.0)
    assert times == [60]
    announcer.end()
    assert lease.excused_seconds == 0


async def drained(queue: UpdateQueue) -> list[RunUpdate]:
    results = []
    while len(queue):
        results.append(await queue.get())
    return results


async def test_states_are_kept_and_of_progress_the_newest() -> None:
    queue = UpdateQueue()
    for records in range(1000):
        for uid in "ab":
            queue.put(RunUpdate(run_uid=uid, state=RUNNING, progress={"records": records}))
    queue.put(RunUpdate(run_uid="a", state=ENDED))
    results = [(u.run_uid, u.state, u.progress.records) for u in await drained(queue)]
    assert results == [("a", RUNNING, 999), ("b", RUNNING, 999), ("a", ENDED, 0)]


async def test_one_goes_before_all_that_wait() -> None:
    queue, urgent = UpdateQueue(), RunUpdate()
    for uid in "ab":
        queue.put(RunUpdate(run_uid=uid, state=RUNNING))
    queue.put(urgent, first=True)
    queue.put(urgent, first=True)
    assert len(queue) == 3
    assert await queue.get() is urgent
    assert [update.run_uid for update in await drained(queue)] == ["a", "b"]


async def test_a_put_from_another_thread_wakes_the_reader() -> None:
    queue = UpdateQueue()
    for number in range(50):
        thread = threading.Thread(target=queue.put, args=[RunUpdate(run_uid=str(number), state=RUNNING)])
        async with asyncio.timeout(10):
            getting = asyncio.ensure_future(queue.get())
            await asyncio.sleep(0)
            thread.start()
            assert (await getting).run_uid == str(number)
        thread.join()


class Topic:
    def __init__(self) -> None:
        self.reports: list[Report] = []

    def publish(self, topic: str, key: str, value: bytes | None) -> None:
        assert topic.startswith("keelman.reports.copy")
        assert value is not None
        self.reports.append(Report.FromString(value))
        assert key == self.reports[-1].name


def test_states_are_reported_at_once_and_progress_once_a_second() -> None:
    clock, topic = Clock(), Topic()
    reporter = CopyRunReporter(topic, "spark/n1", clock)
    run = CopyRun(uid="r", state=RUNNING)
    for records in range(100):
        clock.now = 10 + records / 50
        run.progress.records = records
        reporter.changed(run)
        reporter.flush()
    assert [r.copy_run.progress.records for r in topic.reports] == [0, 50]
    run.state = ENDED
    reporter.changed(run)
    assert topic.reports[-1].copy_run.state == ENDED
    assert topic.reports[-1].reporter == "spark/n1"
    clock.now += 5
    reporter.flush()
    assert len(topic.reports) == 3, "the held records are older than the end"


def test_a_slot_rests_for_what_it_used_beyond_its_share() -> None:
    clock, used = Clock(), Clock()
    share = CpuShare(clock, used)
    used.now += 100
    assert share.rest() == 0.0, "without a bound"
    share.bound(0.5)
    clock.now, used.now = clock.now + 1.0, used.now + 0.6
    assert share.rest() == pytest.approx(0.2)
    clock.now += 0.2
    assert share.rest() == pytest.approx(0.0)
    clock.now, used.now = clock.now + 60.0, used.now + 1.0
    assert share.rest() == 0.0
    used.now += 0.2
    assert share.rest() == pytest.approx(0.2), "only a little is saved up over a quiet minute"
    used.now += 30
    assert share.rest() == MAX_REST_SECONDS
    share.bound(0.0)
    assert share.rest() == 0.0


class Opening:
    """A loop without a thread, which keeps its control."""

    def __init__(self, ticket: StartTicket) -> None:
        self.ticket = ticket
        self.control = Control()

    def start(self) -> None: ...

    def silent_seconds(self) -> float:
        return 0.0

    def standing(self) -> str:
        return ""

    def join(self, timeout: float) -> None: ...


def order(uid: int | str, **kind: object) -> RunOrder:
    return RunOrder(run_uid=str(uid), **kind)  # type: ignore[arg-type]


def test_loops_open_a_few_at_a_time_and_one_that_waits_holds_up_no_others() -> None:
    clock, updates = Clock(), list[RunUpdate]()
    begun: dict[str, Opening] = {}
    loops = Loops(lambda t: begun.setdefault(t.run_uid, Opening(t)), updates.append, clock)
    for number in range(OPENING_AT_ONCE + 6):
        loops.apply(order(number, start=StartTicket(run_uid=str(number))))
    assert len(begun) == OPENING_AT_ONCE
    loops.apply(order(OPENING_AT_ONCE, limits=Limits(records_per_second=7)))
    loops.apply(order(OPENING_AT_ONCE + 1, cut=Cut(reason="WITHDRAWN")))
    assert [(u.run_uid, u.state, u.reason) for u in updates] == [(str(OPENING_AT_ONCE + 1), ENDED, "WITHDRAWN")]
    loops.apply(order(OPENING_AT_ONCE + 2, cut=Cut()))
    loops.apply(order(OPENING_AT_ONCE + 3, drain=Drain()))
    assert [u.reason for u in updates[1:]] == ["CUT", "DRAINED"]
    loops.on_update(RunUpdate(run_uid="0", state=states.COPY_RUN_STATE_STARTING))
    assert len(begun) == OPENING_AT_ONCE
    loops.on_update(RunUpdate(run_uid="0", state=states.COPY_RUN_STATE_FENCED))
    assert list(begun)[-1] == str(OPENING_AT_ONCE)
    assert begun[str(OPENING_AT_ONCE)].ticket.limits.records_per_second == 7
    clock.now += OPENING_SECONDS
    loops.open_next()
    assert len(begun) == OPENING_AT_ONCE + 3
    loops.apply(order(0, drain=Drain()))
    assert begun["0"].control.draining


class Silent(Opening):
    """A loop without a sign of life for a minute."""

    def silent_seconds(self) -> float:
        return 60.0


def test_no_loop_is_silent_for_longer_than_its_process_is_awake() -> None:
    clock = Clock()
    lease = SlotLease(4.0, clock)
    loops = Loops(Silent, list[RunUpdate]().append, clock, awake_seconds=lambda: lease.awake_seconds)
    loops.apply(order("r", start=StartTicket(run_uid="r")))
    clock.now += 10
    assert loops.silent() == {}
    clock.now += 1
    assert loops.silent() == {"r": "its loop has not come back for 11 s"}
    lease = SlotLease(4.0, clock)
    lease.excuse(60)
    clock.now += 50
    assert loops.silent() == {}, "all its threads make no progress"
    lease.resume()
    clock.now += 10
    assert loops.silent() == {}, "it counts from the end of that"
    clock.now += 1
    assert loops.silent() == {"r": "its loop has not come back for 11 s"}


@pytest.mark.parametrize(("error", "retriable"), [(RuntimeError("no thread"), True), (ValueError("x"), False)])
def test_a_loop_that_finds_no_thread_may_try_elsewhere(error: Exception, retriable: bool) -> None:
    def begin(_: StartTicket) -> Opening:
        raise error

    updates = list[RunUpdate]()
    Loops(begin, updates.append).apply(order("r", start=StartTicket()))
    assert [(u.run_uid, u.state, u.retriable) for u in updates] == [("r", states.COPY_RUN_STATE_FAILED, retriable)]
