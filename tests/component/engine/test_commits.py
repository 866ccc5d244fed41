"""Commits of a source that are late, lost or repeated copy every record once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from keelman.kafka.batches import producer as batch_producer
from support.brokers.kafka_proxy import Fate
from support.copying.fed_source import Bench, Feed
from support.copying.harness import Run
from support.copying.orders import DRAIN
from support.waiting import until

pytestmark = pytest.mark.component


def copied_once(bench: Bench, run: Run, reason: str) -> None:
    """The run failed for that reason, and the next one continues without loss or repetition."""
    failed = run.until_state("FAILED")
    assert (failed.reason, failed.retriable) == (reason, True), failed.message
    feed = Feed(bench.name)
    again = bench.run(feed)
    again.until_state("RUNNING")
    for number in range(feed.count, 3):
        feed.put(b"%d" % number)
    until(lambda: bench.offset() == b'{"n":3}', "all three are committed")


@pytest.fixture
def one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions that share an epoch, as with brokers before 4.0."""
    monkeypatch.setattr(batch_producer, "FEATURE", "none")


@pytest.mark.usefixtures("one_epoch")
def test_a_producer_whose_commit_was_slow_is_not_used_again(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    caught = single_bench.brokers.catch(Fate.HOLD, f"test-workers-{single_bench.name}-0", 1)
    single_bench.feed.put(b"0")
    run = single_bench.run()
    single_bench.brokers.seen(caught)
    threading.Event().wait(1.5)  # the fault itself: the request is this late
    single_bench.brokers.release(caught)
    copied_once(single_bench, run, "COMMIT_SLOW")
    assert run.seen[-1].progress.records == 1
    assert single_bench.visible() == [b"0", b"1", b"2"]


@pytest.mark.usefixtures("one_epoch")
def test_a_producer_whose_coordinator_hung_up_is_not_used_again(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    single_bench.brokers.catch(Fate.LOSE_ANSWER, f"test-workers-{single_bench.name}-0", 1)
    single_bench.feed.put(b"0")
    run = single_bench.run()
    copied_once(single_bench, run, "BROKER_LOST")
    assert "the transaction coordinator did not answer" in run.seen[-1].message
    assert single_bench.visible() == [b"0", b"1", b"2"]


@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.CUT])
def test_with_an_epoch_each_a_lost_answer_to_a_commit_is_asked_for_again(
    bench: Callable[..., Bench], fate: Fate
) -> None:
    single_bench = bench()
    single_bench.brokers.catch(fate, f"test-workers-{single_bench.name}-0", 1)
    run = single_bench.run()
    run.until_state("RUNNING")
    for number in range(3):
        single_bench.feed.put(b"%d" % number)
        run.until_records(number + 1)
    run.drain()
    assert single_bench.visible() == [b"0", b"1", b"2"]
    assert single_bench.offset() == b'{"n":3}'


@pytest.mark.usefixtures("one_epoch")
def test_an_endtxn_that_comes_during_a_later_transaction_ends_nothing(bench: Callable[..., Bench]) -> None:
    single_bench = bench(**{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
    held = single_bench.brokers.catch(Fate.HOLD, f"test-workers-{single_bench.name}-0", 1)
    single_bench.feed.put(b"0")
    run = single_bench.run()
    single_bench.feed.all_read()
    run.loop.control.apply(DRAIN)
    failed = run.until_state("FAILED")  # the commit was given up
    assert (failed.reason, failed.retriable) == ("BROKER_LOST", True), failed.message
    feed = Feed(single_bench.name)
    again = single_bench.run(feed)
    again.until_state("RUNNING")
    for number in range(feed.count, 3):
        feed.put(b"%d" % number)
    feed.all_read()
    single_bench.brokers.release(held)
    assert single_bench.visible(stays_open=True) == []
    assert again.drain().progress.records == 3
    assert single_bench.visible() == [b"0", b"1", b"2"]
    assert single_bench.offset() == b'{"n":3}'


def test_with_an_epoch_each_a_repeated_endtxn_that_comes_late_ends_nothing(bench: Callable[..., Bench]) -> None:
    single_bench = bench(**{"transaction.boundary": "connector"})
    held = single_bench.brokers.catch(Fate.HOLD, f"test-workers-{single_bench.name}-0", 1)
    run = single_bench.run()
    run.until_state("RUNNING")
    single_bench.feed.put(b"first", boundary="commit")
    run.until_records(1)  # the commit was repeated on another connection
    large = b"second".ljust(1000)
    single_bench.feed.put(*([large] * 500))  # enough to go out before the transaction ends
    until(lambda: large in single_bench.visible("read_uncommitted"), "the next transaction is open")
    single_bench.brokers.release(held)
    assert single_bench.visible(stays_open=True) == [b"first"]
    single_bench.feed.put(b"last", boundary="commit")
    run.until_records(502)
    assert run.drain().progress.records == 502
    assert single_bench.visible() == [b"first", *([large] * 500), b"last"]
