"""The source engine's guarantees to any reader: topics as it plans them, limits, parking, boundaries."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from keelman.api.copy.v1 import ticket_pb2
from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_RECORDS
from keelman.connect.records import Column
from keelman.connect.topic_plan import TopicPlan
from support.copying.fed_source import Bench, Feed
from support.copying.orders import limit_to
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = pytest.mark.component
JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_payloads_as_they_are_into_a_topic_as_the_reader_plans_it(bench: Callable[..., Bench]) -> None:
    single_bench = bench(**{"value.converter": JSON, "key.converter": JSON})
    single_bench.feed.plan = TopicPlan(3, 1, {"retention.ms": "123456789"})
    single_bench.feed.put(b"\x00\xffno json", None, keys=Column([b"\x01key", None]))
    run = single_bench.run()
    update = run.until_records(2)
    assert update.progress.lag_unit == LAG_UNIT_RECORDS
    assert update.progress.errors == 0
    assert sorted(single_bench.visible(), key=str) == [None, b"\x00\xffno json"]
    resource = ConfigResource(ResourceType.TOPIC, single_bench.name)
    admin = AdminClient({"bootstrap.servers": single_bench.brokers.bootstrap})
    settings = admin.describe_configs([resource])[resource].result(300)
    assert settings["retention.ms"].value == "123456789"
    assert len(admin.list_topics(single_bench.name, 60).topics[single_bench.name].partitions) == 3
    commits = until(lambda: single_bench.feed.commits, "the reader is told of the commit")
    single_bench.feed.put(b"next")
    until(lambda: single_bench.feed.commits > commits, "and of the next")
    run.drain()


def test_a_limit_holds_and_is_lifted_while_the_run_goes(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    single_bench.feed.endless = True
    started = time.monotonic()
    run = single_bench.run(limits=ticket_pb2.Limits(records_per_second=100))
    update = run.until_records(150)
    assert update.progress.records <= 100 * (time.monotonic() - started) + 100
    run.loop.control.apply(limit_to())
    run.until_records(update.progress.records + 5000)
    single_bench.feed.endless = False
    single_bench.feed.all_read()
    count = single_bench.feed.count
    run.loop.control.apply(limit_to(size=10))
    single_bench.feed.put(*([b"x" * 10] * 1000))  # 1000 s at that limit: the run commits at once, then waits
    single_bench.feed.put(b"behind it")
    run.until_records(count + 1000)
    assert single_bench.feed.batches.qsize() == 1, "the records over the limit were read"
    run.loop.control.apply(limit_to(records=1_000_000))
    run.until_records(count + 1001)
    run.loop.control.apply(limit_to(records=0.001))
    single_bench.feed.put(b"a debt of 1000 s")
    run.until_records(count + 1002)
    run.drain()


def test_an_idle_run_says_what_to_watch_until_it_copies_again(bench: Callable[..., Bench]) -> None:
    single_bench = bench(**{"keelman.park.after.ms": "300"})
    run = single_bench.run()
    update = run.until(lambda u: u.HasField("watch"))
    assert (update.watch.file.path, update.watch.file.size, update.watch.file.inode) == ("/the/file", 0, 7)
    single_bench.feed.endless = True
    run.until(lambda u: u.progress.records > 0 and not u.HasField("watch"))
    single_bench.feed.endless = False
    single_bench.feed.all_read()
    update = run.until(lambda u: u.watch.file.size == single_bench.feed.count)
    assert update.progress.offsets == {'{"feed":"test"}': f'{{"n":{single_bench.feed.count}}}'}
    run.drain()
    never = bench(**{"keelman.park.after.ms": "-1"})
    never.feed.put(b"a")
    run = never.run()
    run.until(lambda u: u.progress.records == 1 and u.progress.records_per_second == 0)
    assert not any(u.HasField("watch") for u in run.seen)
    run.drain()


def test_an_interval_holds_a_transaction_open_and_a_drain_commits_it(bench: Callable[..., Bench]) -> None:
    single_bench = bench(**{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
    run = single_bench.run()
    for value in (b"a", b"b"):
        single_bench.feed.put(value)
    single_bench.feed.all_read()
    assert single_bench.visible(stays_open=True) == []
    assert single_bench.offset() is None
    assert run.drain().progress.records == 2
    assert single_bench.visible() == [b"a", b"b"]
    single_bench.config["transaction.boundary.interval.ms"] = "300"
    again = single_bench.run()
    again.until_state("RUNNING")
    single_bench.feed.put(b"c")
    again.until_records(1)
    assert single_bench.offset() == b'{"n":3}'
    again.drain()


def test_a_connector_draws_its_own_transactions(bench: Callable[..., Bench]) -> None:
    single_bench = bench(**{"transaction.boundary": "connector"})
    run = single_bench.run()
    single_bench.feed.put(b"a")
    single_bench.feed.put(b"b", boundary="commit")
    run.until_records(2)
    gone = b"gone".ljust(1000)
    for number in range(3):
        single_bench.feed.put(*([gone] * 500))  # enough to go out before the transaction ends
        if number == 0:
            until(lambda: gone in single_bench.visible("read_uncommitted"), "what is to be aborted is in the topic")
        single_bench.feed.put(b"gone", boundary="abort")
    aborted = f'{{"n":{single_bench.feed.count}}}'
    run.until(lambda u: aborted in u.progress.offsets.values())
    assert single_bench.offset() == aborted.encode(), "the offsets of the aborted records are committed"
    single_bench.feed.put(b"c", boundary="commit")
    run.until_records(3)
    whole = single_bench.offset()
    single_bench.feed.put(b"half")
    single_bench.feed.all_read()
    assert run.drain().progress.records == 3
    assert single_bench.visible() == [b"a", b"b", b"c"]
    assert single_bench.offset() == whole
    again = single_bench.run(Feed(single_bench.name))
    again.until_state("RUNNING")
    single_bench.feed.put(b"d", boundary="commit")
    again.until_records(1)
    assert single_bench.visible() == [b"a", b"b", b"c", b"d"]


def test_a_record_that_the_broker_refuses_fails_for_good(bench: Callable[..., Bench]) -> None:
    single_bench = bench()
    create_topic(single_bench.brokers.bootstrap, single_bench.name, 1, **{"cleanup.policy": "compact"})
    single_bench.feed.put(b"keyed", b"without a key", keys=Column([b"k", None]))
    failed = single_bench.run().until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False), failed.message
    assert single_bench.visible() == []
