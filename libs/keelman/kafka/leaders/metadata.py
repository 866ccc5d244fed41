"""Requests from brokers the leaders and leader epochs of partitions, and the ids of topics: Metadata 12.

Sources: https://cwiki.apache.org/confluence/display/KAFKA/KIP-320 for the epochs,
https://cwiki.apache.org/confluence/display/KAFKA/KIP-516 for topic ids, and the layout of Metadata 12 in
https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message
"""

from __future__ import annotations

import base64
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple, TypeAlias

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError

from keelman.kafka.clients import Client
from keelman.kafka.connections import answer_of
from keelman.kafka.wire.fields import NO_TAGS, Fields, compact, varint
from keelman.kafka.wire.requests import WireRequest

Part: TypeAlias = tuple[str, int]
"""A topic's name and the number of a partition."""
NO_EPOCH = -1
"""The leader epoch of a client that knows none: brokers then check nothing."""
NOT_ASKED = -(1 << 31)
_WRITE = 4
_NO_ID = bytes(16)


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
            answer: MetadataAnswer = await answer_of(client, node, AskMetadata(topics))
        except IncompatibleBrokerVersion:
            raise
        except (KafkaError, OSError, TimeoutError) as error:
            problem = error
            continue
        if answer.brokers:
            return answer
    raise KafkaError(f"no broker answers about topics: {problem!r}")
