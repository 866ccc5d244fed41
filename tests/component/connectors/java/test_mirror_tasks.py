"""MirrorMaker's own tasks, from Connect's jars: a mirrored topic with its offset syncs, heartbeats, and checkpoints."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from support.java.kit import needs_java
from support.java.shared_host import HostedRun, hosted_java
from support.kafka.topics import commit, create_topic, messages
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]

MIRROR = "org.apache.kafka.connect.mirror"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
RECORDS = 3000
FOR_EVER = {"retention.ms": "-1"}
"""The records are of 2001: brokers delete records older than a week from time to time."""


def config(bootstrap: str, name: str, kind: str, folder: Path, **more: str) -> dict[str, str]:
    """The configuration of a task that mirrors from `<name>a` to `<name>b`, both of which are the one broker."""
    return {
        "name": f"{name}-{kind}",
        "connector.class": f"{MIRROR}.Mirror{kind}SourceConnector",
        "task.class": f"{MIRROR}.Mirror{kind}Task",
        "classes": str(folder),
        "key.converter": BYTES,
        "value.converter": BYTES,
        "header.converter": BYTES,
        "source.cluster.alias": f"{name}a",
        "target.cluster.alias": f"{name}b",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "offset.lag.max": "10",
        "emit.checkpoints.interval.seconds": "1",
        "emit.heartbeats.interval.seconds": "1",
        "task.index": "0",
        **more,
    }


def running(bootstrap: str, values: dict[str, str], folder: Path) -> Any:
    """The process that copies for the task."""
    fields = {"worker_config": {"offset.flush.interval.ms": "500"}}
    return hosted_java(bootstrap, values, folder / values["name"], fields=fields)


def copied(process: HostedRun, fields: dict[str, str], folder: Path, topic: str, records: int) -> None:
    """Returns once so many records are in the topic, over any number of copy runs."""
    log = folder / fields["name"]

    def there() -> bool:
        assert process.poll() is None, log.read_text(errors="replace")[-6000:]
        return len(messages(fields["target.cluster.bootstrap.servers"], topic)) >= records

    try:
        until(there, f"{fields['name']} has copied", every=1.0)
    except AssertionError as error:
        raise AssertionError(f"{error}; the log ends with:\n{log.read_text(errors='replace')[-6000:]}") from error


def synced(bootstrap: str, syncs: str, name: str) -> set[int]:
    """The partitions with offset syncs."""
    return {struct.unpack(f">H{len(name)}sI", message.key() or b"")[2] for message in messages(bootstrap, syncs)}


def test_mirror_maker_of_java(bootstrap: str, name: str, tmp_path: Path) -> None:
    remote, syncs = f"{name}a.{name}", f"mm2-offset-syncs.{name}b.internal"
    for topic, partitions in (
        (name, 2),
        (remote, 2),
        (syncs, 1),
        (f"{name}a.checkpoints.internal", 1),
    ):
        create_topic(bootstrap, topic, partitions, **FOR_EVER)
    if "heartbeats" not in AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=300).topics:
        create_topic(bootstrap, "heartbeats", **FOR_EVER)  # its name is the same for all mirrors
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(RECORDS):
        producer.produce(
            name, b"%d" % number, b"k", number % 2, headers=[("h", b"\x00\xff")], timestamp=10**12 + number
        )
    assert producer.flush(300) == 0
    parts = ",".join(f"{name}-{part}" for part in range(2))
    mirror = config(bootstrap, name, "Source", tmp_path, **{"task.assigned.partitions": parts})
    with running(bootstrap, mirror, tmp_path) as process:
        copied(process, mirror, tmp_path, remote, RECORDS)
        # Syncs that wait for others are sent with the next commit, which comes without records too.
        until(lambda: synced(bootstrap, syncs, name) == {0, 1}, "offsets of both partitions are synced", every=1.0)
        process.terminate()
        assert process.wait(60) == 0
    actual_messages = messages(bootstrap, remote)
    assert sorted(int(actual_message.value() or b"") for actual_message in actual_messages) == list(range(RECORDS))
    for message in actual_messages:
        number = int(message.value() or b"")
        assert (message.partition(), message.timestamp()[1]) == (number % 2, 10**12 + number)
        assert (message.key(), message.headers()) == (b"k", [("h", b"\x00\xff")])
    places = {
        (actual_message.partition(), actual_message.offset()): int(actual_message.value() or b"")
        for actual_message in actual_messages
    }
    for sync in messages(bootstrap, syncs):
        _, _, part = struct.unpack(f">H{len(name)}sI", sync.key() or b"")
        upstream, downstream = struct.unpack(">qq", sync.value() or b"")
        if upstream >= 0:
            assert places[part, downstream] == 2 * upstream + part
    commit(bootstrap, f"{name}-readers", name, RECORDS // 2)
    checkpoints = config(bootstrap, name, "Checkpoint", tmp_path, **{"task.assigned.groups": f"{name}-readers"})
    with running(bootstrap, checkpoints, tmp_path) as process:
        copied(process, checkpoints, tmp_path, f"{name}a.checkpoints.internal", 1)
    assert f"{name}-readers".encode() in (messages(bootstrap, f"{name}a.checkpoints.internal")[0].key() or b"")
    heartbeats = config(bootstrap, name, "Heartbeat", tmp_path)
    before = len(messages(bootstrap, "heartbeats"))
    with running(bootstrap, heartbeats, tmp_path) as process:
        copied(process, heartbeats, tmp_path, "heartbeats", before + 2)
