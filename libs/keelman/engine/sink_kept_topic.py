"""The offsets that a Kafka sink keeps with its data: records of a topic of their own, in the data's transaction.

A group on the target cluster cannot hold them: a broker takes a group's offsets only for topics that it has, and the
topics that a sink reads need not be there.

One compacted topic of one partition a connector. A key is `{"topic":...,"partition":...}` of the topic that is read, a
value `{"offset":...,"mirrored":[...]}`, as in `KeptOffset`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import KeptOffset
from keelman.connect.records import TopicPartition
from keelman.connect.topic_plan import TopicPlan
from keelman.engine.clients import with_token
from keelman.engine.failure import RunFailure
from keelman.engine.outlet import OffsetRecord, Outlet
from keelman.engine.partition_offsets import offsets_at
from keelman.engine.topics import ensure_topic

# Small segments: what is compacted away need not be read, and only closed segments are compacted.
TOPIC = TopicPlan(1, -1, {"cleanup.policy": "compact", "segment.bytes": "10485760", "min.cleanable.dirty.ratio": "0.1"})
# A dead producer's transaction holds the reading up until it times out, which the coordinator looks for every 10 s.
READ_SECONDS = 60.0
ASK_SECONDS = 10.0


class KeptTopic:
    """The kept offsets of one connector on the cluster that its sink writes to."""

    def __init__(self, connector: str, admin: Mapping[str, Any], consumer: Mapping[str, Any]) -> None:
        """`admin` and `consumer` are the client library's properties for the target cluster."""
        self.name = f"connect-{connector}-exactly-once"
        self._admin = dict(admin)
        self._consumer = dict(consumer)

    def ensure(self, outlet: Outlet) -> None:
        """Makes the topic when it is not there. Raises KafkaException or RunFailure."""
        ensure_topic(self.name, outlet.partitions, self._admin, {}, {}, plan=TOPIC)

    def read(self, beat: Callable[[], None]) -> dict[TopicPartition, KeptOffset]:
        """All kept offsets that are committed now; call it after the fence.

        Reads read_committed up to the end that others see uncommitted: with a sibling's transaction open, the end of
        what is committed comes too early. Raises KafkaException, RunFailure, ConnectError for a foreign record.
        """
        end = self._end()
        if end <= 0:
            return {}
        chosen = {
            "group.id": self.name,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
        consumer = Consumer({**with_token(self._consumer), **chosen})
        try:
            consumer.assign([ClientPartition(self.name, 0, 0)])
            return decode(self._last_of_each_key(consumer, end, beat))
        finally:
            consumer.close()

    def _end(self) -> int:
        only, admin = TopicPartition(self.name, 0), AdminClient(with_token(self._admin))
        try:
            return offsets_at(OffsetSpec.latest(), [only], admin, read_committed=False, seconds=ASK_SECONDS)[only]
        except TimeoutError:
            raise RunFailure("BROKER_LOST", f"{self.name}: no answer within {ASK_SECONDS:.0f} s") from None

    def _last_of_each_key(self, consumer: Consumer, end: int, beat: Callable[[], None]) -> dict[bytes, bytes | None]:
        found: dict[bytes, bytes | None] = {}
        deadline = time.monotonic() + READ_SECONDS
        while True:
            beat()
            for message in consumer.consume(10_000, 0.1):
                error = message.error()
                if error is None:
                    found[message.key()] = message.value()
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif message.offset() >= end:
                    return found
            if time.monotonic() > deadline:
                raise RunFailure("BROKER_LOST", f"{self.name} could not be read to its end in {READ_SECONDS:.0f} s")


def encode(kept: Mapping[TopicPartition, KeptOffset]) -> list[OffsetRecord]:
    """The records that keep these offsets."""
    return [
        (
            _json({"topic": partition.topic, "partition": partition.partition}),
            _json({"offset": one.offset, "mirrored": list(one.mirrored)}),
        )
        for partition, one in kept.items()
    ]


def _json(tree: dict[str, Any]) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


def decode(records: Mapping[bytes, bytes | None]) -> dict[TopicPartition, KeptOffset]:
    """What the last records of all keys keep. Raises ConnectError for a record of another kind."""
    kept = {}
    for key, value in records.items():
        if value is None:
            continue
        try:
            where, what = json.loads(key), json.loads(value)
            partition = TopicPartition(where["topic"], where["partition"])
            kept[partition] = KeptOffset(what["offset"], tuple(what["mirrored"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(f"a kept offset cannot be read: {key!r}: {value!r} ({error})") from error
    return kept
