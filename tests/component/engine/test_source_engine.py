"""What the source engine promises to any reader: limits, parking, boundaries, offset topics, and producers that end."""

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from keelman.api.copy.v1 import ticket_pb2
from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_RECORDS
from keelman.connect.plugin import Direction, Reader
from keelman.connect.records import Column, SourceBatch
from keelman.connect.topic_plan import TopicPlan
from keelman.connect.watches import FileWatch, Watch
from keelman.kafka.batches import producer as batch_producer
from keelman.testing.brokers.broker import BrokerProcess, proxied_broker
from keelman.testing.brokers.kafka_proxy import END_TXN, Catch, Fate
from support.copying.harness import (
    OFFSET_PARTITIONS,
    OneTask,
    Run,
    committed_offsets,
    create_topic,
    messages,
    ticket,
    until,
)

pytestmark = pytest.mark.component

NUMBERS = itertools.count()
JSON = "org.apache.kafka.connect.json.JsonConverter"
PARTITION = {"feed": "test"}
T = TypeVar("T")


class Brokers:
    """One broker behind a proxy that sees requests, both run by a loop in a thread of its own."""

    def __init__(self, home: Path, broker: BrokerProcess | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open = proxied_broker(home, broker)
        self.proxy = self.call(self._open.__aenter__())
        self.bootstrap = self.proxy.address

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(150)

    def catch(self, fate: Fate, transactional_id: str, nth: int) -> Catch:
        """The n-th EndTxn from now on meets that fate."""
        return self.proxy.catch(END_TXN, fate, transactional_id=transactional_id, nth=nth)

    def seen(self, caught: Catch) -> None:
        self.call(caught.seen())

    def release(self, caught: Catch) -> bytes:
        """Lets a held request go on; the broker's answer."""
        self._loop.call_soon_threadsafe(caught.release)
        answer: bytes = self.call(caught.answered())
        return answer

    def close(self) -> None:
        self.call(self._open.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    made = Brokers(tmp_path_factory.mktemp("broker"))
    create_topic(made.bootstrap, "test-offsets", OFFSET_PARTITIONS, **{"cleanup.policy": "compact"})
    yield made
    made.close()


class Feed(Reader):
    """Gives the batches that the test has put in, each with the number of its last record as offset."""

    lag_unit = "records"

    def __init__(self, name: str) -> None:
        self.topic = name
        self.batches: queue.SimpleQueue[SourceBatch] = queue.SimpleQueue()
        self.endless = False
        self.empty_reads = 0
        self.count = 0
        self.commits = 0
        self.plan: TopicPlan | None = None

    def put(self, *values: bytes | None, **more: Any) -> None:
        """One batch."""
        self.count += len(values)
        chosen: dict[str, Any] = {"raw": True, "offsets": ((PARTITION, {"n": self.count}),), **more}
        self.batches.put(SourceBatch(self.topic, Column(list(values)), **chosen))

    def partitions(self) -> list[dict[str, str]]:
        return [PARTITION]

    def read(self) -> SourceBatch | None:
        if self.endless:
            count = min(1000, self.most_records or 1000)
            self.put(*(b"%d" % (self.count + n) for n in range(count)))
        try:
            return self.batches.get_nowait()
        except queue.Empty:
            self.empty_reads += 1
            return None

    def all_read(self) -> None:
        """Waits until everything was read and the engine has come back for more."""
        before = self.empty_reads
        until(lambda: self.batches.empty() and self.empty_reads > before, "all is read")

    def left(self) -> int:
        return self.batches.qsize()

    def watch(self) -> Watch:
        return FileWatch("/the/file", self.count, 7)

    def topic_plan(self, topic: str) -> TopicPlan | None:
        return self.plan

    def committed(self) -> None:
        self.commits += 1


class Bench:
    """One task that copies what its feed gives; run as often as the test likes."""

    def __init__(self, brokers: Brokers, **config: str) -> None:
        self.name = f"fed{next(NUMBERS)}"
        self.brokers = brokers
        self.config = {"name": self.name, "connector.class": "FedSource", **config}
        self.feed = Feed(self.name)
        self.runs: list[Run] = []

    def run(self, feed: Feed | None = None, **fields: Any) -> Run:
        self.feed = feed or self.feed
        opened = self.feed

        class FedSource(OneTask):
            names = ("FedSource",)
            direction = Direction.SOURCE

            @classmethod
            def open_reader(cls, config: Any, offset: Any) -> Reader:
                opened.count = (offset(PARTITION) or {"n": 0})["n"]
                return opened

        granted = ticket(self.brokers.bootstrap, self.config, **fields)
        self.runs.append(Run(granted, find=lambda _: FedSource))
        return self.runs[-1]

    def visible(self, isolation: str = "read_committed", *, stays_open: bool = False) -> list[bytes | None]:
        """All values of the topic; `stays_open` as in `messages`."""
        return visible(self.brokers.bootstrap, self.name, isolation, stays_open=stays_open)

    def offset(self, topic: str = "test-offsets") -> bytes | None:
        """The committed offset in an offset topic."""
        return dict(committed_offsets(self.brokers.bootstrap, topic, self.name)).get(
            b'["%s",{"feed":"test"}]' % self.name.encode()
        )


def visible(bootstrap: str, topic: str, isolation: str, *, stays_open: bool = False) -> list[bytes | None]:
    return [m.value() for m in messages(bootstrap, topic, isolation, stays_open=stays_open)]


@pytest.fixture
def bench(brokers: Brokers) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**config: str) -> Bench:
        made.append(Bench(brokers, **config))
        return made[-1]

    yield make
    runs = [run for one in made for run in one.runs]
    for run in runs:
        run.loop.cut("TEST_ENDED")
    for run in runs:
        assert run.loop.join(60)


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
    run.loop.limit(ticket_pb2.Limits())
    run.until_records(told.progress.records + 5000)
    one.feed.endless = False
    one.feed.all_read()
    count = one.feed.count
    run.loop.limit(ticket_pb2.Limits(bytes_per_second=10))
    one.feed.put(*([b"x" * 10] * 1000))  # 1000 s at that limit: to be committed at once, then waited for
    one.feed.put(b"behind it")
    run.until_records(count + 1000)
    assert one.feed.batches.qsize() == 1, "what is over the limit was read"
    run.loop.limit(ticket_pb2.Limits(records_per_second=1_000_000))
    run.until_records(count + 1001)
    run.loop.limit(ticket_pb2.Limits(records_per_second=0.001))
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


@pytest.mark.parametrize("delivery", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
def test_a_connectors_own_offset_topic_is_made_and_the_workers_follows(
    bench: Callable[..., Bench], delivery: str
) -> None:
    one = bench()
    own = f"{one.name}-offsets"
    guarantee = ticket_pb2.DeliveryGuarantee.Value(f"DELIVERY_GUARANTEE_{delivery}")
    fields = {"offset_topic": own, "worker_offset_topic": "test-offsets", "delivery": guarantee}
    fields["worker_config"] = {"offset.storage.partitions": "7", "offset.storage.segment.bytes": "1048576"}
    one.feed.put(b"a")
    run = one.run(**fields)
    run.until_records(1)
    assert one.offset(own) == b'{"n":1}'
    until(lambda: one.offset() == b'{"n":1}', "the worker's topic follows")
    resource = ConfigResource(ResourceType.TOPIC, own)
    admin = AdminClient({"bootstrap.servers": one.brokers.bootstrap})
    settings = admin.describe_configs([resource])[resource].result(60)
    assert (settings["cleanup.policy"].value, settings["segment.bytes"].value) == ("compact", "1048576")
    assert len(admin.list_topics(own, 60).topics[own].partitions) == 7
    one.feed.put(b"b", offsets=((PARTITION, None),))
    run.until_records(2)
    assert one.offset(own) is None
    assert one.offset() is None
    run.drain()


def test_a_worker_topic_that_cannot_be_written_is_no_failure(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.config |= {f"{k}.override.bootstrap.servers": one.brokers.bootstrap for k in ("producer", "admin")}
    one.feed.put(b"a")
    own = f"{one.name}-offsets"
    create_topic(one.brokers.bootstrap, own, 1, **{"cleanup.policy": "compact"})
    elsewhere = {"producer.bootstrap.servers": "127.0.0.1:9"}
    run = one.run(offset_topic=own, worker_offset_topic="test-offsets", worker_config=elsewhere)
    run.until_records(1)
    assert one.offset(own) == b'{"n":1}'
    assert run.drain().reason == "DRAINED"


def test_a_task_may_not_write_to_its_own_offset_topic(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.feed.topic = "test-offsets"
    one.feed.put(b"a")
    failed = one.run().until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    assert "may not produce to their own offsets topics" in failed.message


def test_a_record_that_the_broker_refuses_fails_for_good(bench: Callable[..., Bench]) -> None:
    one = bench()
    create_topic(one.brokers.bootstrap, one.name, 1, **{"cleanup.policy": "compact"})
    one.feed.put(b"keyed", b"without a key", keys=Column([b"k", None]))
    failed = one.run().until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False), failed.message
    assert one.visible() == []


def test_offsets_are_written_again_after_a_fence_though_nothing_new_is_read(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.feed.put(b"a")
    run = one.run()
    run.until_records(1)
    run.drain()
    offsets = visible(one.brokers.bootstrap, "test-offsets", "read_committed")
    again = one.run()
    until(lambda: one.feed.commits == 2, "a commit without records")
    again.drain()
    assert visible(one.brokers.bootstrap, "test-offsets", "read_committed").count(b'{"n":1}') > offsets.count(
        b'{"n":1}'
    )


def copied_once(one: Bench, run: Run, reason: str) -> None:
    """The run failed for that reason, and the next one goes on without loss or repetition."""
    failed = run.until_state("FAILED")
    assert (failed.reason, failed.retriable) == (reason, True), failed.message
    feed = Feed(one.name)
    again = one.run(feed)
    again.until_state("RUNNING")
    for number in range(feed.count, 3):
        feed.put(b"%d" % number)
    until(lambda: one.offset() == b'{"n":3}', "all three are committed")


@pytest.fixture
def one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions that share an epoch, as brokers before 4.0 have them."""
    monkeypatch.setattr(batch_producer, "FEATURE", "none")


@pytest.mark.usefixtures("one_epoch")
def test_a_producer_whose_commit_was_slow_is_not_used_again(bench: Callable[..., Bench]) -> None:
    one = bench()
    caught = one.brokers.catch(Fate.HOLD, f"test-workers-{one.name}-0", 1)
    one.feed.put(b"0")
    run = one.run()
    one.brokers.seen(caught)
    threading.Event().wait(1.5)  # the fault itself: the request is this late
    one.brokers.release(caught)
    copied_once(one, run, "COMMIT_SLOW")
    assert run.seen[-1].progress.records == 1
    assert one.visible() == [b"0", b"1", b"2"]


@pytest.mark.usefixtures("one_epoch")
def test_a_producer_whose_coordinator_hung_up_is_not_used_again(bench: Callable[..., Bench]) -> None:
    one = bench()
    one.brokers.catch(Fate.LOSE_ANSWER, f"test-workers-{one.name}-0", 1)
    one.feed.put(b"0")
    run = one.run()
    copied_once(one, run, "BROKER_LOST")
    assert "the transaction coordinator did not answer" in run.seen[-1].message
    assert one.visible() == [b"0", b"1", b"2"]


@pytest.mark.parametrize("fate", [Fate.LOSE_ANSWER, Fate.CUT])
def test_with_an_epoch_each_a_lost_answer_to_a_commit_is_asked_for_again(
    bench: Callable[..., Bench], fate: Fate
) -> None:
    one = bench()
    one.brokers.catch(fate, f"test-workers-{one.name}-0", 1)
    run = one.run()
    run.until_state("RUNNING")
    for number in range(3):
        one.feed.put(b"%d" % number)
        run.until_records(number + 1)
    run.drain()
    assert one.visible() == [b"0", b"1", b"2"]
    assert one.offset() == b'{"n":3}'


@pytest.mark.usefixtures("one_epoch")
def test_an_endtxn_that_comes_during_a_later_transaction_ends_nothing(bench: Callable[..., Bench]) -> None:
    one = bench(**{"transaction.boundary": "interval", "transaction.boundary.interval.ms": "600000"})
    held = one.brokers.catch(Fate.HOLD, f"test-workers-{one.name}-0", 1)
    one.feed.put(b"0")
    run = one.run()
    one.feed.all_read()
    run.loop.drain()
    failed = run.until_state("FAILED")  # the commit was given up
    assert (failed.reason, failed.retriable) == ("BROKER_LOST", True), failed.message
    feed = Feed(one.name)
    again = one.run(feed)
    again.until_state("RUNNING")
    for number in range(feed.count, 3):
        feed.put(b"%d" % number)
    feed.all_read()
    one.brokers.release(held)
    assert one.visible(stays_open=True) == []
    assert again.drain().progress.records == 3
    assert one.visible() == [b"0", b"1", b"2"]
    assert one.offset() == b'{"n":3}'


def test_with_an_epoch_each_a_repeated_endtxn_that_comes_late_ends_nothing(bench: Callable[..., Bench]) -> None:
    one = bench(**{"transaction.boundary": "connector"})
    held = one.brokers.catch(Fate.HOLD, f"test-workers-{one.name}-0", 1)
    run = one.run()
    run.until_state("RUNNING")
    one.feed.put(b"first", boundary="commit")
    run.until_records(1)  # the commit was repeated on another connection
    large = b"second".ljust(1000)
    one.feed.put(*([large] * 500))  # enough to go out before the transaction ends
    until(lambda: large in one.visible("read_uncommitted"), "the next transaction is open")
    one.brokers.release(held)
    assert one.visible(stays_open=True) == [b"first"]
    one.feed.put(b"last", boundary="commit")
    run.until_records(502)
    assert run.drain().progress.records == 502
    assert one.visible() == [b"first", *([large] * 500), b"last"]
