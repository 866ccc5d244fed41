"""Exactly-once sinks whose topics are deleted and created again, or lose records that were already copied."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from component.engine.test_kept_offsets import until_shown
from component.engine.test_sinks import all_read, file_sink, kafka_sink, produce
from keelman.api.copy.v1 import ticket_pb2
from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_FAILED as FAILED
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.kafka.groups.changes import GroupChanges
from keelman.kafka.groups.static_members import remove_static_members
from support.brokers.broker import BrokerProcess, started_broker
from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = pytest.mark.component

LOG = "00000000000000000000.log"


@pytest.fixture(scope="module")
async def broker(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[BrokerProcess]:
    """A broker whose logs a test shortens while it is away."""
    async with started_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


def written(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in numbers:
        producer.produce(topic, b"%d" % number)
    assert producer.flush(300) == 0


async def test_a_topic_that_is_made_anew_is_copied_from_its_beginning_though_it_is_longer(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """The group shows its former offset, as with a sink whose last commit comes late."""
    produce(bootstrap, name, range(10))
    config, group, client = file_sink(name, tmp_path / "taken"), f"connect-{name}-out", {"bootstrap.servers": bootstrap}
    run, changes = runs(ticket(bootstrap, config)), GroupChanges(client, group, client_id="test")
    await until_shown(changes, {(name, 0): 11}, "the end, behind the mark of the transaction")
    run.copied(10)
    shown = await changes.offsets()
    made_anew(bootstrap, name)
    await remove_static_members(client, group, [f"test-workers-{name}-out-0"])
    await changes.commit(shown)
    written(bootstrap, name, range(100, 130))
    run = runs(ticket(bootstrap, config))
    run.until(all_read)
    run.drain()
    taken = [int(line) for line in (tmp_path / "taken").read_text().split()]
    assert taken == [*range(10), *range(100, 130)]


def made_anew(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])[topic].result(300)
    until(lambda: topic not in admin.list_topics(timeout=300).topics, "it is gone")
    create_topic(bootstrap, topic)


def copied_on(run: Run, begin: Callable[[], Run], end: int) -> None:
    """Waits until everything up to this offset is read, by new runs in place of those that fail.

    A run that has not yet noticed that its log was cut may have read everything it knows of.
    """

    def done(update: RunUpdate) -> bool:
        return all_read(update) and {*map(int, update.progress.offsets.values())} == {end}

    while (update := run.until(lambda u: done(u) or u.state == FAILED)).state == FAILED:
        assert update.retriable, update
        run = begin()
    run.drain()


@pytest.mark.parametrize("former", ["lower epochs", "equal epochs"])
async def test_a_topic_that_is_made_anew_under_a_running_sink_is_copied_from_its_beginning(
    broker: BrokerProcess, name: str, tmp_path: Path, runs: Callable[..., Run], former: str
) -> None:
    """The client library would continue past the offset that it had read in the former topic.

    If the new leader's epochs are lower, it would fetch nothing for ever.
    """
    at = broker.bootstrap
    create_topic(at, name)
    if former == "lower epochs":
        await broker.end()
        await broker.start()
    written(at, name, range(10))
    first_ticket = ticket(at, file_sink(name, tmp_path / "taken"))
    run = runs(first_ticket)
    run.until(lambda u: all_read(u) and u.progress.records == 10)
    made_anew(at, name)
    written(at, name, range(100, 150))
    run.until(lambda u: u.state == FAILED and u.reason == "TOPIC_RECREATED")
    copied_on(runs(first_ticket), lambda: runs(first_ticket), 50)
    taken = [int(line) for line in (tmp_path / "taken").read_text().split()]
    assert taken == [*range(10), *range(100, 150)]


def cut(folder: Path, topic: str, keeps: int) -> None:
    """Shortens a partition's log to so many bytes, as a broker does that starts alone in an unclean election."""
    (partition,) = folder.rglob(f"{topic}-0")
    with (partition / LOG).open("r+b") as file:
        file.truncate(keeps)
    for other in (*partition.glob("*index"), *partition.glob("*.snapshot"), partition.parent / ".kafka_cleanshutdown"):
        other.unlink(missing_ok=True)


def length(folder: Path, topic: str) -> int:
    (partition,) = folder.rglob(f"{topic}-0")
    return (partition / LOG).stat().st_size


@pytest.mark.parametrize("delivery", ["EXACTLY_ONCE", "AT_LEAST_ONCE"])
async def test_records_that_were_fetched_ahead_of_a_cut_are_taken_all_the_same(
    broker: BrokerProcess, bootstrap: str, name: str, runs: Callable[..., Run], delivery: str
) -> None:
    """By itself the client would discard them and continue where the log was cut; it notices while they wait."""
    at = broker.bootstrap
    create_topic(at, name)
    written(at, name, range(200))
    keeps = length(broker.home, name)
    written(at, name, range(200, 300))
    config = {**kafka_sink(name), "target.cluster.bootstrap.servers": bootstrap}
    config["consumer.override.max.poll.records"] = "1"
    guarantee = ticket_pb2.DeliveryGuarantee.Value(f"DELIVERY_GUARANTEE_{delivery}")
    slow = ticket_pb2.Limits(records_per_second=20)
    run = runs(ticket(at, config, limits=slow, delivery=guarantee))
    run.until_records(5)
    await broker.end()
    cut(broker.home, name, keeps)
    await broker.start()
    written(at, name, range(1000, 1040))
    copied_on(run, lambda: runs(ticket(at, config, delivery=guarantee)), 240)
    taken = [int(m.value()) for m in messages(bootstrap, f"to-{name}")]
    once = taken if delivery == "EXACTLY_ONCE" else list(dict.fromkeys(taken))
    assert 200 <= len(once) - 40 <= 300, "some of the lost records may have been taken before"
    assert once == [*range(len(once) - 40), *range(1000, 1040)]


async def test_a_log_that_has_lost_its_end_is_copied_on_from_where_it_parts(
    broker: BrokerProcess, name: str, runs: Callable[..., Run]
) -> None:
    """The log has grown past the sink's position since: its end alone shows nothing."""
    at = broker.bootstrap
    create_topic(at, name)
    written(at, name, range(20))
    keeps = length(broker.home, name)
    written(at, name, range(20, 50))
    config = kafka_sink(name)
    runs(ticket(at, config)).copied(50)
    await broker.end()
    cut(broker.home, name, keeps)
    await broker.start()
    written(at, name, range(100, 140))
    run = runs(ticket(at, config))
    run.until(all_read)
    run.drain()
    assert [int(m.value()) for m in messages(at, f"to-{name}")] == [*range(50), *range(100, 140)]
