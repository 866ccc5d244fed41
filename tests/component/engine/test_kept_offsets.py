"""Offsets that a sink keeps with its data: their owner, and their fate.

The group's offsets expire or are set, the topic is cut, or a task loses its place.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from component.connectors.test_mirror import alter
from component.engine.test_sinks import all_read, kafka_sink, produce
from keelman.api.copy.v1 import ticket_pb2
from keelman.kafka.groups.changes import GroupChanges
from keelman.kafka.groups.static_members import remove_static_members
from keelman.worker.offsets.sink_offsets import SinkOffsets
from support.copying.harness import Run, ticket
from support.eventually import eventually
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component

# So long that the group gets no commit during a test, except at an orderly end.
RARELY = {"keelman.commit.interval.ms": "30000"}


def cluster(group: str) -> dict[str, str]:
    """The properties of a worker cluster of its own, whose sinks are in a group of their own."""
    return {"group.id": f"workers-{group}", "consumer.group.id": f"readers-{group}"}


def copied(bootstrap: str, topic: str) -> list[int]:
    return sorted(int(m.value()) for m in messages(bootstrap, topic))


def cut(run: Run) -> None:
    run.loop.control.cut("TEST")
    run.until_state("ENDED")
    assert run.loop.join(300)


async def without_group(bootstrap: str, group: str) -> None:
    """Deletes a group's offsets as brokers do when they expire."""
    changes = GroupChanges({"bootstrap.servers": bootstrap}, group, client_id="test")
    await changes.delete()
    assert await changes.offsets() == {}


async def until_shown(changes: GroupChanges, offsets: dict[tuple[str, int], int], what: str) -> None:
    """Waits until a group shows these offsets."""

    async def is_shown() -> bool:
        return await changes.offsets() == offsets

    await eventually(is_shown, what=f"the group shows {what}")


async def empty_group(bootstrap: str, name: str, group: str) -> None:
    await remove_static_members({"bootstrap.servers": bootstrap}, group, [f"test-workers-{name}-out-0"])


def test_a_sink_whose_name_another_worker_cluster_uses_copies_all(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(900))
    first = runs(ticket(bootstrap, kafka_sink(name, topic="a-${topic}", **RARELY), worker_config=cluster(f"{name}-a")))
    first.until_records(900)
    second = runs(ticket(bootstrap, kafka_sink(name, topic="b-${topic}", **RARELY), worker_config=cluster(f"{name}-b")))
    second.until(all_read)
    second.drain()
    first.drain()
    assert copied(bootstrap, f"b-{name}") == list(range(900))


def test_sinks_of_one_name_in_two_worker_clusters_go_on_where_each_was(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    """One sink has copied past the group's last known offsets; the other must not continue from that position."""
    produce(bootstrap, name, range(500))

    def granted(text: str) -> ticket_pb2.StartTicket:
        config = kafka_sink(name, topic=f"{text}-${{topic}}", **RARELY)
        return ticket(bootstrap, config, worker_config=cluster(f"{name}-{text}"))

    for letter in "ab":
        runs(granted(letter)).copied(500)
    produce(bootstrap, name, range(500, 600))
    ahead = runs(granted("a"))
    ahead.until_records(100)
    behind = runs(granted("b"))
    behind.until(all_read)
    behind.drain()
    ahead.drain()
    assert copied(bootstrap, f"a-{name}") == copied(bootstrap, f"b-{name}") == list(range(600))


def test_kept_offsets_are_found_in_a_topic_whose_log_begins_above_0(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    kept_topic = f"connect-{name}-out-exactly-once"
    produce(bootstrap, name, range(10))
    config = kafka_sink(name, **RARELY)
    run = runs(ticket(bootstrap, config))
    run.until_records(10)
    produce(bootstrap, name, range(10, 20))
    run.until_records(20)
    cut(run)
    last = max(m.offset() for m in messages(bootstrap, kept_topic))
    client = AdminClient({"bootstrap.servers": bootstrap})
    alter(client, kept_topic, "cleanup.policy", "compact,delete")  # otherwise the broker deletes nothing
    (deleted,) = client.delete_records([ClientPartition(kept_topic, 0, last)]).values()
    deleted.result(300)
    alter(client, kept_topic, "cleanup.policy", "compact")
    produce(bootstrap, name, range(20, 30))
    run = runs(ticket(bootstrap, config))
    run.until(all_read)
    run.drain()
    assert copied(bootstrap, f"to-{name}") == list(range(30))


def test_a_topic_of_kept_offsets_that_brokers_delete_from_is_refused(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    create_topic(bootstrap, f"connect-{name}-out-exactly-once", 1, **{"cleanup.policy": "delete"})
    produce(bootstrap, name, range(1))
    failed = runs(ticket(bootstrap, kafka_sink(name))).until_state("FAILED")
    assert f"topic connect-{name}-out-exactly-once has cleanup.policy=delete" in failed.message
    assert not failed.retriable


async def test_a_group_that_is_behind_the_data_hears_of_it_though_nothing_new_comes(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, range(100))
    run = runs(ticket(bootstrap, kafka_sink(name, **RARELY)))
    run.until_records(100)
    cut(run)
    group = GroupChanges({"bootstrap.servers": bootstrap}, f"connect-{name}-out", client_id="test")
    assert await group.offsets() == {}
    runs(ticket(bootstrap, kafka_sink(name)))

    async def told() -> bool:
        return list((await group.offsets()).values()) == [100]

    await eventually(told, what="its group has the copied offsets")
    assert copied(bootstrap, f"to-{name}") == list(range(100))


@pytest.mark.parametrize("kind", ["KafkaSink", "FileStreamSink"])
async def test_group_offsets_that_expire_repeat_nothing(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run], kind: str
) -> None:
    produce(bootstrap, name, range(100))
    config = kafka_sink(name)
    if kind != "KafkaSink":
        config = {**config, "connector.class": kind, "file": str(tmp_path / "taken")}
    runs(ticket(bootstrap, config)).copied(100)
    await empty_group(bootstrap, name, f"connect-{name}-out")
    await without_group(bootstrap, f"connect-{name}-out")
    produce(bootstrap, name, range(100, 110))
    run = runs(ticket(bootstrap, config))
    run.until(all_read)
    run.drain()
    if kind == "KafkaSink":
        assert copied(bootstrap, f"to-{name}") == list(range(110))
    else:
        assert [int(line) for line in (tmp_path / "taken").read_text().split()] == list(range(110))


@pytest.mark.parametrize("kind", ["KafkaSink", "FileStreamSink"])
async def test_offsets_that_are_reset_or_set_through_rest_count(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run], kind: str
) -> None:
    """A reset also after the group's offsets have expired, and a number that the group could have had anyway."""
    produce(bootstrap, name, range(10))
    config, group, client = kafka_sink(name), f"connect-{name}-out", {"bootstrap.servers": bootstrap}
    if kind != "KafkaSink":
        config = {**config, "connector.class": kind, "file": str(tmp_path / "taken")}
    offsets = SinkOffsets(f"{name}-out", group, client, config)

    async def copies(records: int) -> None:
        run = runs(ticket(bootstrap, config))
        if records:
            run.until_records(records)
        run.until(all_read)
        run.drain()
        await empty_group(bootstrap, name, group)

    async def still() -> None:
        pass

    await copies(10)
    await without_group(bootstrap, group)
    await offsets.reset(still)
    assert await offsets.read() == {}
    await copies(10)
    await offsets.alter({(name, 0): 4}, still)
    assert await offsets.read() == {(name, 0): 4}
    await copies(6)
    await offsets.alter({(name, 0): None}, still)
    assert await offsets.read() == {}
    await copies(10)
    produce(bootstrap, name, range(10, 11))
    await copies(1)
    expected = sorted([*range(10), *range(10), *range(4, 10), *range(10), 10])
    if kind == "KafkaSink":
        assert copied(bootstrap, f"to-{name}") == expected
    else:
        assert sorted(int(line) for line in (tmp_path / "taken").read_text().split()) == expected
