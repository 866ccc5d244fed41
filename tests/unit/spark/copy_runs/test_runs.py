"""How updates change copy runs, and which are kept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.rpc.pages import copy_run_key
from keelman.spark.copy_runs.runs import KEPT_ENDED, Owner, Run, RunBook, fold, opened

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LATER = datetime(2026, 1, 3, tzinfo=UTC)
OWNER = Owner("wc", "w:8083", "1")
STARTING, RUNNING, DRAINING = (
    states.COPY_RUN_STATE_STARTING,
    states.COPY_RUN_STATE_RUNNING,
    states.COPY_RUN_STATE_DRAINING,
)
ENDED, FAILED = states.COPY_RUN_STATE_ENDED, states.COPY_RUN_STATE_FAILED


def run(uid: str = "r", task: int = 0, connector: str = "c") -> Run:
    ticket = StartTicket(run_uid=uid, worker_cluster="wc", worker_id="w:8083", connector=connector, task=task)
    return Run(OWNER, opened(ticket, NOW))


def update(state: int, reason: str = "", records: int | None = None) -> RunUpdate:
    run_update = RunUpdate(state=state, reason=reason)  # type: ignore[arg-type]
    if records is not None:
        run_update.progress.records = records
    return run_update


def test_a_new_run_is_pending_with_unknown_lag() -> None:
    copy_run = run().copy_run
    assert not copy_run.progress.HasField("lag")
    assert (copy_run.state, copy_run.create_time.ToDatetime(UTC)) == (states.COPY_RUN_STATE_PENDING, NOW)


def test_states_move_forward_and_may_skip() -> None:
    copy_run = run().copy_run
    assert fold(copy_run, update(RUNNING), LATER)
    assert copy_run.state == RUNNING
    assert copy_run.update_time.ToDatetime(UTC) == LATER


@pytest.mark.parametrize("late", [states.COPY_RUN_STATE_PENDING, STARTING, RUNNING])
def test_a_late_state_changes_nothing(late: int) -> None:
    copy_run = run().copy_run
    fold(copy_run, update(DRAINING, "TOLD"), NOW)
    assert not fold(copy_run, update(late, "LATE"), LATER)
    assert (copy_run.state, copy_run.reason) == (DRAINING, "TOLD")


@pytest.mark.parametrize("first", [ENDED, FAILED])
@pytest.mark.parametrize("second", [STARTING, RUNNING, ENDED, FAILED])
def test_an_ended_run_stays_as_it_ended(first: int, second: int) -> None:
    copy_run = run().copy_run
    fold(copy_run, update(first, "FIRST", 5), NOW)
    assert not fold(copy_run, update(second, "SECOND", 9), LATER)
    assert (copy_run.state, copy_run.reason, copy_run.progress.records) == (first, "FIRST", 5)


def test_progress_never_goes_back_and_survives_an_update_without_it() -> None:
    copy_run = run().copy_run
    fold(copy_run, update(RUNNING, records=10), NOW)
    assert not fold(copy_run, update(RUNNING, records=9), NOW)
    assert fold(copy_run, update(RUNNING, records=11), NOW)
    fold(copy_run, update(FAILED, "SLOT_LOST"), NOW)
    assert copy_run.progress.records == 11


def test_late_progress_of_an_earlier_state_still_counts() -> None:
    copy_run = run().copy_run
    fold(copy_run, update(DRAINING, records=1), NOW)
    assert fold(copy_run, update(RUNNING, records=2), NOW)
    assert (copy_run.state, copy_run.progress.records) == (DRAINING, 2)


@pytest.mark.parametrize("state", [99, -1])
def test_a_state_of_another_version_is_ignored(state: int) -> None:
    copy_run = run().copy_run
    unknown = RunUpdate()
    unknown.MergeFromString(b"\x10" + (b"\x63" if state == 99 else b"\xff" * 9 + b"\x01"))
    assert unknown.state == state
    assert not fold(copy_run, unknown, NOW)


def test_the_last_ten_ended_of_each_task_are_kept() -> None:
    book = RunBook()
    for task in (0, 1):
        for number in range(KEPT_ENDED + 3):
            copy_run = run(f"r{task}-{number}", task)
            book.add(copy_run)
            fold(copy_run.copy_run, update(ENDED), NOW)
            book.ended(copy_run)
    uids = sorted(r.uid for r in book.matching("", "", include_ended=True))
    assert uids == sorted(f"r{t}-{n}" for t in (0, 1) for n in range(3, KEPT_ENDED + 3))
    assert not list(book.matching("", "", include_ended=False))


def test_filing_a_run_forgets_its_secrets() -> None:
    book, copy_run = RunBook(), run()
    copy_run.waiting.append(object())  # type: ignore[arg-type]
    book.add(copy_run)
    book.ended(copy_run)
    assert copy_run.waiting == []


def test_filters_and_order() -> None:
    book = RunBook()
    for uid, connector, task in (("1", "b", 0), ("2", "a", 10), ("3", "a", 2)):
        book.add(run(uid, task, connector))
    assert [r.uid for r in sorted(book.matching("wc", "", include_ended=False), key=copy_run_key)] == ["3", "2", "1"]
    assert [r.uid for r in book.matching("wc", "b", include_ended=False)] == ["1"]
    assert not list(book.matching("other", "", include_ended=True))


@pytest.mark.parametrize("last", [ENDED, FAILED])
def test_an_ended_copy_run_keeps_no_metrics_of_the_connectors_own(last: int) -> None:
    copy_run = run().copy_run
    for state in (RUNNING, last):
        reported = update(state, records=5)
        reported.progress.own_metrics.add(name="polls", value=7)
        assert fold(copy_run, reported, NOW)
        assert len(copy_run.progress.own_metrics) == (state == RUNNING)
    assert copy_run.progress.records == 5
