"""What the source engine promises to any reader: topics as it plans them, limits, parking, boundaries."""

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
    one = bench(**{"value.converter": JSON, "key.converter": JSON})
    one.feed.plan = TopicPlan(3, 1, {"retention.ms": "123456789"})
    one.feed.put(b"\x00\xffno json", None, keys=Column([b"\x01key", None]))
    run = one.run()
    told = run.until_records(2)
    assert told.progress.lag_unit == LAG_UNIT_RECORDS
    assert told.progress.errors == 0
    assert sorted(one.visible(), key=str) == [None, b"\x00\xffno json"]
    resource = ConfigResource(ResourceType.TOPIC, one.name)
    admin = AdminClient({"bootstrap.servers": one.brokers.bootstrap})
    settings = admin.describe_configs([resource])[resource].result(60)
    assert settings["retention.ms"].value == "123456789"
    assert len(admin.list_topics(one.name, 60).topics[one.name].partitions) == 3
    commits = until(lambda: one.feed.commits, "the reader is told of the commit")
    one.feed.put(b"next")
    until(lambda: one.feed.commits > commits, "and of the next")
    run.drain()


def test_a_limit_holds_and_is_lifted_while_the_run_goes(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.feed.endless = True
    started = time.monotonic()
    run = one.run(limits=ticket_pb2.Limits(records_per_second=100))
    told = run.until_records(150)
    assert told.progress.records <= 100 * (time.monotonic() - started) + 100
    run.loop.control.apply(limit_to())
    run.until_records(told.progress.records + 5000)
    one.feed.endless = False
    one.feed.all_read()
    count = one.feed.count
    run.loop.control.apply(limit_to(size=10))
    one.feed.put(*([b"x" * 10] * 1000))  # 1000 s at that limit: to be committed at once, then waited for
    one.feed.put(b"behind it")
    run.until_records(count + 1000)
    assert one.feed.batches.qsize() == 1, "what is over the limit was read"
    run.loop.control.apply(limit_to(records=1_000_000))
    run.until_records(count + 1001)
    run.loop.control.apply(limit_to(records=0.001))
    one.feed.put(b"a debt of 1000 s")
    run.until_records(count + 1002)
    run.drain()


def test_an_idle_run_says_what_to_watch_until_it_copies_again(bench: Callable[..., Bench]) -> None:
    one = bench(**{"keelman.park.after.ms": "300"})
    run = one.run()
    told = run.until(lambda u: u.HasField("watch"))
    assert (told.watch.file.path, told.watch.file.size, told.watch.file.inode) == ("/the/file", 0, 7)
    one.feed.endless = True
    run.until(lambda u: u.progress.records > 0 and not u.HasField("watch"))
    one.feed.endless = False
    one.feed.all_read()
    told = run.until(lambda u: u.watch.file.size == one.feed.count)
    assert told.progress.offsets == {'{"feed":"test"}': f'{{"n":{one.feed.count}}}'}
    run.drain()
    never = bench(**{"keelman.park.after.ms": "-1"})
    never.feed.put(b"a")
    run = never.run()
    run.until(lambda u: u.progress.records == 1 and u.progress.records_per_second == 0)
    assert not any(u.HasField("watch") for u in run.seen)
    run.drain()


def test_an_interval_holds_a_transaction_open_and_a_drain_commits_it(bench: Callable[..., Bench]) -> None:
    one = bench(**{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
    run = one.run()
    for value in (b"a", b"b"):
        one.feed.put(value)
    one.feed.all_read()
    assert one.visible(stays_open=True) == []
    assert one.offset() is None
    assert run.drain().progress.records == 2
    assert one.visible() == [b"a", b"b"]
    one.config["transaction.boundary.interval.ms"] = "300"
    again = one.run()
    again.until_state("RUNNING")
    one.feed.put(b"c")
    again.until_records(1)
    assert one.offset() == b'{"n":3}'
    again.drain()


def test_a_connector_draws_its_own_transactions(bench: Callable[..., Bench]) -> None:
    one = bench(**{"transaction.boundary": "connector"})
    run = one.run()
    one.feed.put(b"a")
    one.feed.put(b"b", boundary="commit")
    run.until_records(2)
    gone = b"gone".ljust(1000)
    for number in range(3):
        one.feed.put(*([gone] * 500))  # enough to go out before the transaction ends
        if number == 0:
            until(lambda: gone in one.visible("read_uncommitted"), "what is to be aborted is in the topic")
        one.feed.put(b"gone", boundary="abort")
    aborted = f'{{"n":{one.feed.count}}}'
    run.until(lambda u: aborted in u.progress.offsets.values())
    assert one.offset() == aborted.encode(), "the offsets of what was aborted are committed"
    one.feed.put(b"c", boundary="commit")
    run.until_records(3)
    whole = one.offset()
    one.feed.put(b"half")
    one.feed.all_read()
    assert run.drain().progress.records == 3
    assert one.visible() == [b"a", b"b", b"c"]
    assert one.offset() == whole
    again = one.run(Feed(one.name))
    again.until_state("RUNNING")
    one.feed.put(b"d", boundary="commit")
    again.until_records(1)
    assert one.visible() == [b"a", b"b", b"c", b"d"]


def test_a_record_that_the_broker_refuses_fails_for_good(bench: Callable[..., Bench]) -> None:
    one = bench()
    create_topic(one.brokers.bootstrap, one.name, 1, **{"cleanup.policy": "compact"})
    one.feed.put(b"keyed", b"without a key", keys=Column([b"k", None]))
    failed = one.run().until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False), failed.message
    assert one.visible() == []
