"""Requests from brokers a partition's leader and epoch, the end of an epoch in its log, and a topic's id.

Sources: https://cwiki.apache.org/confluence/display/KAFKA/KIP-320 for the epochs,
https://cwiki.apache.org/confluence/display/KAFKA/KIP-516 for topic ids, and the layouts of Metadata 12 and
OffsetForLeaderEpoch 4 in https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message
"""

from __future__ import annotations

import asyncio
import base64
import random
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError, for_code

from keelman.kafka.batches.wire import WireRequest
from keelman.kafka.batches.wire_fields import NO_TAGS, Fields, compact, varint
from keelman.kafka.clients import Client
from keelman.kafka.connections import answer_of
from keelman.kafka.error_codes import CODES
from keelman.kafka.fetching.fetched import Part
from keelman.runtime.backoff import Backoff

NO_EPOCH = -1
"""The leader epoch of a client that knows none: brokers then check nothing."""
NOT_ASKED = -(1 << 31)
_WRITE = 4
_NO_ID = bytes(16)
_CONSUMER = -1
# Error codes that the library does not know or treats as permanent.
_PASSING = frozenset(
    CODES[name]
    for name in (
        "UNKNOWN_SERVER_ERROR",
        "REPLICA_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
    )
)


@dataclass(frozen=True, slots=True)
class Leader:
    """A partition's leader: its node, -1 while there is none, and its leader epoch, -1 when not known."""

    node: int
    epoch: int
    code: int = 0
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()


NOBODY = Leader(-1, NO_EPOCH)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic, as a broker reports it. `id` has the form of Kafka's tools, empty when the broker knows none; a topic
    that is deleted and created again has another id. `code` is Kafka's error code, 0 for none. `operations` are the
    client's rights, one bit for each number of AclOperation; NOT_ASKED when they were not requested."""

    name: str
    id: str
    code: int
    partitions: Mapping[int, Leader]
    internal: bool = False
    operations: int = NOT_ASKED

    @property
    def writable(self) -> bool:
        """Whether the client may write to the topic, as far as the broker has reported."""
        return self.operations == NOT_ASKED or bool(self.operations & 1 << _WRITE)


class BrokerAddress(NamedTuple):
    """One broker of the cluster."""

    node: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    """Answer to Metadata 12."""

    brokers: tuple[BrokerAddress, ...]
    controller: int
    topics: Mapping[str, TopicInfo]

    @classmethod
    def decode(cls, data: BytesIO) -> MetadataAnswer:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        brokers = []
        for _ in range(fields.count()):
            brokers.append(BrokerAddress(fields.int32(), fields.text(), fields.int32(), fields.text() or None))
            fields.tags()
        fields.text()  # cluster id
        controller = fields.int32()
        topics = [_topic(fields) for _ in range(fields.count())]
        return cls(tuple(brokers), controller, {topic.name: topic for topic in topics})


def _topic(fields: Fields) -> TopicInfo:
    code, name, raw = fields.int16(), fields.text(), fields.raw(16)
    internal = fields.raw(1) != b"\0"
    partitions: dict[int, Leader] = {}
    for _ in range(fields.count()):
        problem, number, node, epoch = fields.int16(), fields.int32(), fields.int32(), fields.int32()
        replicas, isr, _offline = (tuple(fields.int32() for _ in range(fields.count())) for _ in range(3))
        fields.tags()
        partitions[number] = Leader(node, epoch, problem, replicas, isr)
    operations = fields.int32()
    fields.tags()
    topic_id = "" if raw == _NO_ID else base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return TopicInfo(name, topic_id, code, partitions, internal, operations)


@dataclass(frozen=True, slots=True)
class AskMetadata(WireRequest, key=3, version=12, answer=MetadataAnswer):
    """Requests these topics and all brokers: Metadata 12, supported since Kafka 3.1. Creates no missing topic.

    `rights` also requests the client's rights on the topics."""

    topics: Collection[str]
    rights: bool = False

    def encode(self) -> bytes:
        """Encodes the request without automatic topic creation."""
        named = b"".join(_NO_ID + compact(topic) + NO_TAGS for topic in self.topics)
        return varint(len(self.topics) + 1) + named + bytes((0, self.rights)) + NO_TAGS


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
            (topic, number): struct.pack(">iii", number, one.current, one.epoch) + NO_TAGS
            for (topic, number), one in self.asked.items()
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


async def metadata_of(client: Client, topics: Collection[str], *, first: Iterable[int] = ()) -> MetadataAnswer:
    """Returns these topics' metadata from the first broker that answers; brokers of `first` are queried before others.

    Raises KafkaError: IncompatibleBrokerVersion from brokers before Kafka 3.1, KafkaConnectionError when none answers.
    """
    nodes = [broker.nodeId for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    preferred = [node for node in first if node in nodes]
    problem: BaseException | None = None
    for node in dict.fromkeys([*preferred, *nodes]):
        try:
            found: MetadataAnswer = await answer_of(client, node, AskMetadata(topics))
        except IncompatibleBrokerVersion:
            raise
        except (KafkaError, OSError, TimeoutError) as error:
            problem = error
            continue
        if found.brokers:
            return found
    raise KafkaError(f"no broker answers about topics: {problem!r}")


async def epoch_ends(client: Client, epochs: Mapping[Part, int], *, seconds: float) -> dict[Part, EpochEnd]:
    """Returns where these epochs end in the logs of the partitions' leaders, which it finds itself.

    Retries transient errors (a leader that moves, a broker that is away) until the time is over; the answer then has
    the last error code, or NETWORK_EXCEPTION without one. Raises IncompatibleBrokerVersion.
    """
    clock = asyncio.get_running_loop().time
    deadline, backoff = clock() + seconds, Backoff(first=0.05, most=1.0)
    open_parts, found = dict(epochs), dict[Part, EpochEnd]()
    while open_parts and clock() < deadline:
        try:
            async with asyncio.timeout_at(deadline):
                found |= await _ends_once(client, open_parts)
        except IncompatibleBrokerVersion:
            raise
        except (KafkaError, OSError, TimeoutError):
            pass
        open_parts = {one: epoch for one, epoch in epochs.items() if one not in found or passes(found[one].code)}
        if open_parts:
            await asyncio.sleep(max(0.0, min(deadline - clock(), backoff.next())))
    nothing = EpochEnd(NO_EPOCH, -1, CODES["NETWORK_EXCEPTION"])
    return {one: found.get(one, nothing) for one in epochs}


def passes(code: int) -> bool:
    """Whether another leader, or the same leader later, may answer otherwise."""
    problem = for_code(code)
    return bool(code in _PASSING or (code and (problem.retriable or problem.invalid_metadata)))


async def _ends_once(client: Client, epochs: Mapping[Part, int]) -> dict[Part, EpochEnd]:
    metadata = await metadata_of(client, {topic for topic, _ in epochs})
    answered: dict[Part, EpochEnd] = {}
    by_node: dict[int, dict[Part, AskedEpoch]] = {}
    for (topic, number), epoch in epochs.items():
        leader = metadata.topics[topic].partitions.get(number) if topic in metadata.topics else None
        if leader is None:
            code = metadata.topics[topic].code if topic in metadata.topics else 0
            unknown = code or CODES["UNKNOWN_TOPIC_OR_PARTITION"]
            answered[topic, number] = EpochEnd(NO_EPOCH, -1, unknown)
        elif leader.node < 0:
            answered[topic, number] = EpochEnd(NO_EPOCH, -1, CODES["LEADER_NOT_AVAILABLE"])
        else:
            by_node.setdefault(leader.node, {})[topic, number] = AskedEpoch(epoch, leader.epoch)
    for node, asked in by_node.items():
        answer: EpochEnds = await answer_of(client, node, AskEpochEnds(asked))
        answered |= answer.parts
    return answered
