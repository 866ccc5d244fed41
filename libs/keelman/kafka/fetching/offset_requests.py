"""Requests for the end of an epoch in a partition's log (OffsetForLeaderEpoch) and for its first and end offsets
(ListOffsets), and their answers.

Sources: https://cwiki.apache.org/confluence/display/KAFKA/KIP-320 for the epochs, and the layouts of
OffsetForLeaderEpoch 4 and ListOffsets 6 in
https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from keelman.kafka.leaders.metadata import Part
from keelman.kafka.wire.fields import NO_TAGS, Fields, compact, varint
from keelman.kafka.wire.requests import WireRequest

_CONSUMER = -1


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The largest epoch of a log that is not larger than the requested one, and the offset where it ends there.

    Both are -1 if the leader has no such epoch: all its records are newer, or it has not had the requested epoch yet.
    `code` is Kafka's error code, 0 for none.
    """

    epoch: int
    offset: int
    code: int = 0


@dataclass(frozen=True, slots=True)
class EpochEnds:
    """Answer to OffsetForLeaderEpoch 4."""

    parts: Mapping[Part, EpochEnd]

    @classmethod
    def decode(cls, data: BytesIO) -> EpochEnds:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time

        def one(topic: str) -> tuple[Part, EpochEnd]:
            code, number, epoch, offset = fields.int16(), fields.int32(), fields.int32(), fields.int64()
            return (topic, number), EpochEnd(epoch, offset, code)

        return cls(dict(fields.of_partitions(one)))


class AskedEpoch(NamedTuple):
    """`epoch` is the epoch whose end is requested, `current` the epoch in which the broker is thought to lead."""

    epoch: int
    current: int


@dataclass(frozen=True, slots=True)
class AskEpochEnds(WireRequest, key=23, version=4, answer=EpochEnds):
    """Requests the ends of epochs: OffsetForLeaderEpoch 4, supported since Kafka 2.8. Needs DESCRIBE on the topics.

    A broker that does not lead, or that leads in another epoch than `current`, answers NOT_LEADER_OR_FOLLOWER,
    FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.
    """

    asked: Mapping[Part, AskedEpoch]

    def encode(self) -> bytes:
        """Encodes the request as a consumer's."""
        parts = {
            (topic, number): struct.pack(">iii", number, end.current, end.epoch) + NO_TAGS
            for (topic, number), end in self.asked.items()
        }
        return struct.pack(">i", _CONSUMER) + _by_topic(parts) + NO_TAGS


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """The requested offset; -1 with a `code`, Kafka's error code."""

    offset: int
    code: int = 0


@dataclass(frozen=True, slots=True)
class Offsets:
    """Answer to ListOffsets 6."""

    parts: Mapping[Part, FoundOffset]

    @classmethod
    def decode(cls, data: BytesIO) -> Offsets:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time

        def one(topic: str) -> tuple[Part, FoundOffset]:
            number, code = fields.int32(), fields.int16()
            fields.int64()  # timestamp
            offset = fields.int64()
            fields.int32()  # leader epoch
            return (topic, number), FoundOffset(offset, code)

        return cls(dict(fields.of_partitions(one)))


@dataclass(frozen=True, slots=True)
class AskOffsets(WireRequest, key=2, version=6, answer=Offsets):
    """Requests the first (-2) or end (-1) offsets from the leader of that epoch: ListOffsets 6, since Kafka 2.8.

    `asked` has timestamp and epoch of each; the end is the last stable offset where `isolation` is 1.
    """

    isolation: int
    asked: Mapping[Part, tuple[int, int]]

    def encode(self) -> bytes:
        """Encodes the request as a consumer's."""
        parts = {
            (topic, number): struct.pack(">iiq", number, epoch, timestamp) + NO_TAGS
            for (topic, number), (timestamp, epoch) in self.asked.items()
        }
        return struct.pack(">ib", _CONSUMER, self.isolation) + _by_topic(parts) + NO_TAGS


def _by_topic(parts: Mapping[Part, bytes]) -> bytes:
    """Encodes a compact array of topics, each with a compact array of its partitions."""
    topics: dict[str, list[bytes]] = {}
    for (topic, _), encoded in parts.items():
        topics.setdefault(topic, []).append(encoded)
    out = [varint(len(topics) + 1)]
    for topic, some in topics.items():
        out += (compact(topic), varint(len(some) + 1), *some, NO_TAGS)
    return b"".join(out)
