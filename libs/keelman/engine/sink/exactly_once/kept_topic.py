"""Keeps a Kafka sink's offsets with its data: as records of a separate topic, in the data's transaction.

A group on the target cluster cannot hold them: a broker takes a group's offsets only for topics that it has, and a
sink's source topics need not exist there.

One compacted topic of one partition for all sinks of a name. The keys of one reader (`SinkReader`):

- `{"workers","group","cluster","topic","partition"}`: the kept offset of a source partition, as `KeptOffset`;
- the same with `"claimed_by"`: the transactional id of a task that may commit for it; see `claims`.

Keys with only `topic` and `partition` are of an older version without readers; their owner is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import KeptOffset
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.kept_offsets import SinkReader
from keelman.connect.topic_plan import TopicPlan
from keelman.engine.failure import RunFailure
from keelman.engine.producing.producer import OffsetRecord, RunProducer
from keelman.engine.sink.exactly_once.journal import json_of, kept_of
from keelman.engine.sink.target import TargetCluster
from keelman.engine.topics import COMPACT, POLICY, ensure_compacted
from keelman.kafka.tables.reading import OnePartition
from keelman.model.errors import DeadlineExceeded
from keelman.runtime.side_loop import KAFKA_LOOP

# Small segments: compacted records need not be read, and brokers compact only closed segments.
TOPIC = TopicPlan(1, -1, {POLICY: COMPACT, "segment.bytes": "10485760", "min.cleanable.dirty.ratio": "0.1"})
# A dead producer's transaction blocks reads until it times out, which the coordinator checks every 10 s.
READ_SECONDS = 60.0


@dataclass(slots=True)
class KeptRows:
    """The rows of a topic of kept offsets that concern one reader."""

    kept: dict[TopicPartition, KeptOffset] = field(default_factory=dict)
    claims: dict[TopicPartition, dict[str, int]] = field(default_factory=dict)
    """By partition the transactional ids that claim it, each with the offset of its claim."""
    old: dict[TopicPartition, KeptOffset] = field(default_factory=dict)
    """Offsets kept before offsets had readers."""
    shared: set[TopicPartition] = field(default_factory=set)
    """Partitions with the same topic and number for which other readers keep offsets."""


class KeptTopic:
    """The kept offsets of the sinks of one name on the cluster that they write to."""

    def __init__(self, connector: str, target: TargetCluster) -> None:
        self.name = f"connect-{connector}-exactly-once"
        self._admin = target.admin
        self._reading = OnePartition(target.reader, self.name, client_id=f"connector-kept-offsets-{connector}")
        self._records: dict[bytes, tuple[int, bytes]] = {}

    def ensure(self, producer: RunProducer) -> None:
        """Creates the topic if it is missing. Raises KafkaException, RunFailure, or ConnectError for a topic that is
        not compacted, or has more than one partition: then claims would have no order."""
        ensure_compacted(self.name, producer.partitions, self._admin, TOPIC, "topic of kept offsets")
        count = producer.partitions(self.name)
        if count > 1:
            raise ConnectError(f"topic {self.name}, for kept offsets, has {count} partitions; it must have 1")

    def read(self, reader: SinkReader, beat: Callable[[], None]) -> KeptRows:
        """Returns the committed rows.

        Reads read_committed up to the end that includes uncommitted records: while a sibling's transaction is open, the
        end of committed records comes too early. Raises Unavailable, RunFailure, ConnectError for a foreign record.
        """
        try:
            rows = KAFKA_LOOP.call(self._reading.read(seconds=READ_SECONDS), beat)
        except DeadlineExceeded as error:
            raise RunFailure("BROKER_LOST", error.message) from None
        for row in rows:
            if row.value is None:
                self._records.pop(row.key, None)
            else:
                self._records[row.key] = row.offset, row.value
        return decode(self._records, reader)


def offset_record(reader: SinkReader, partition: TopicPartition, kept_offset: KeptOffset) -> OffsetRecord:
    """Returns the record that keeps an offset."""
    return _key(reader, partition), _json(json_of(kept_offset))


def claim_record(reader: SinkReader, partition: TopicPartition, claimed_by: str, *, holds: bool) -> OffsetRecord:
    """Returns the record that makes a claim, or without `holds` takes it back."""
    return _key(reader, partition, claimed_by=claimed_by), (_json({}) if holds else None)


def old_tombstone(partition: TopicPartition) -> OffsetRecord:
    """Returns the record that deletes an offset without a reader, of an older version."""
    return _json({"topic": partition.topic, "partition": partition.partition}), None


def _key(reader: SinkReader, partition: TopicPartition, **more: str) -> bytes:
    return _json({**reader._asdict(), "topic": partition.topic, "partition": partition.partition, **more})


def _json(tree: Mapping[str, Any]) -> bytes:
    return json.dumps(tree, separators=(",", ":")).encode()


def decode(records: Mapping[bytes, tuple[int, bytes]], reader: SinkReader) -> KeptRows:
    """Decodes the last records of all keys, given with their offsets. Raises ConnectError for any other record."""
    rows, mine = KeptRows(), reader._asdict()
    for key, (at, value) in records.items():
        try:
            where, what = json.loads(key), json.loads(value)
            partition = TopicPartition(where["topic"], where["partition"])
            whose = {name: where[name] for name in mine} if "workers" in where else None
            if "claimed_by" in where:
                if whose == mine:
                    rows.claims.setdefault(partition, {})[where["claimed_by"]] = at
            elif whose is None:
                rows.old[partition] = kept_of(what)
            elif whose == mine:
                rows.kept[partition] = kept_of(what)
            else:
                rows.shared.add(partition)
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(f"a kept offset cannot be read: {key!r}: {value!r} ({error})") from error
    return rows
