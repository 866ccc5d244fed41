"""Exactly-once sinks whose topics are deleted and made anew, or lose what was copied already."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from copy_harness import Run, create_topic, messages, ticket, until
from test_sinks import all_read, file_sink, kafka_sink, produce

from keelman.kafka.group_changes import GroupChanges
from keelman.kafka.static_members import remove_static_members
from keelman.testing.broker import BrokerProcess

pytestmark = pytest.mark.component


def written(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in numbers:
        producer.produce(topic, b"%d" % number)
    assert producer.flush(60) == 0


async def test_a_topic_that_is_made_anew_is_copied_from_its_beginning_though_it_is_longer(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """Its group shows what it showed, as that of a sink does whose last commit comes late."""
    produce(bootstrap, name, range(10))
    config, group, client = file_sink(name, tmp_path / "taken"), f"connect-{name}-out", {"bootstrap.servers": bootstrap}
    run = runs(ticket(bootstrap, config))
    run.until_records(10)
    run.drain()
    changes = GroupChanges(client, group, client_id="test")
    shown = await changes.offsets()
    assert shown == {(name, 0): 11}
    admin = AdminClient(client)
    admin.delete_topics([name])[name].result(60)
    until(lambda: name not in admin.list_topics(timeout=60).topics, "it is gone")
    create_topic(bootstrap, name)
    await remove_static_members(client, group, [f"test-workers-{name}-out-0"])
    await changes.commit(shown)
    written(bootstrap, name, range(100, 130))
    run = runs(ticket(bootstrap, config))
    run.until(all_read)
    run.drain()
    taken = [int(line) for line in (tmp_path / "taken").read_text().split()]
    assert taken == [*range(10), *range(100, 130)]


async def test_a_log_that_has_lost_its_end_is_copied_on_from_where_it_parts(
    name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """It has grown past the sink's position since: its end alone tells nothing."""
    broker = BrokerProcess(tmp_path / "broker")
    await broker.start()
    try:
        at = broker.bootstrap
        create_topic(at, name)
        written(at, name, range(20))
        (folder,) = (tmp_path / "broker").rglob(f"{name}-0")
        log = folder / "00000000000000000000.log"
        keeps = log.stat().st_size
        written(at, name, range(20, 50))
        config = kafka_sink(name)
        run = runs(ticket(at, config))
        run.until_records(50)
        run.drain()
        await broker.end()
        with log.open("r+b") as file:
            file.truncate(keeps)
        for other in (*folder.glob("*index"), *folder.glob("*.snapshot"), *folder.parent.glob(".kafka_cleanshutdown")):
            other.unlink()
        await broker.start()
        written(at, name, range(100, 140))
        run = runs(ticket(at, config))
        run.until(all_read)
        run.drain()
        assert [int(m.value()) for m in messages(at, f"to-{name}")] == [*range(50), *range(100, 140)]
    finally:
        await broker.end()
