"""Requests the names of all topics from a broker, and none of their other metadata."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from io import BytesIO

from aiokafka.errors import IncompatibleBrokerVersion, KafkaError

from keelman.kafka.clients import Client
from keelman.kafka.connections import answer_of
from keelman.kafka.wire.fields import NO_TAGS, Fields, varint
from keelman.kafka.wire.requests import WireRequest


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The topic names of a Metadata 12 answer. `worked` is the processor time spent on decoding it, in seconds."""

    names: tuple[str, ...]
    worked: float

    @classmethod
    def decode(cls, data: BytesIO) -> TopicNames:
        """Decodes the answer; `data` begins after the header."""
        begun = time.thread_time()
        fields = Fields(data.read())
        fields.int32()  # throttle time
        for _ in range(fields.count()):
            fields.int32(), fields.text(), fields.int32(), fields.text()
            fields.tags()
        fields.text()  # cluster id
        fields.int32()  # controller
        names = [_name(fields) for _ in range(fields.count())]
        return cls(tuple(names), time.thread_time() - begun)


def _name(fields: Fields) -> str:
    fields.int16()
    name = fields.text()
    fields.raw(17)  # id, internal
    for _ in range(fields.count()):
        fields.raw(14)  # problem, number, leader, epoch
        for _replicas in range(3):
            fields.raw(4 * fields.count())
        fields.tags()
    fields.int32()
    fields.tags()
    return name


@dataclass(frozen=True, slots=True)
class AskTopicNames(WireRequest, key=3, version=12, answer=TopicNames):
    """Requests all topics and all brokers: Metadata 12, which brokers support since Kafka 3.1."""

    def encode(self) -> bytes:
        """Encodes a null list of topics, which means all topics."""
        return varint(0) + bytes(2) + NO_TAGS


async def topic_names(client: Client) -> TopicNames:
    """Returns the topic names from the first broker that answers. Raises KafkaError: IncompatibleBrokerVersion from
    brokers before Kafka 3.1, KafkaConnectionError when no broker answers."""
    nodes = [broker.nodeId for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    problem: BaseException | None = None
    for node in nodes:
        try:
            answer: TopicNames = await answer_of(client, node, AskTopicNames())
        except IncompatibleBrokerVersion:
            raise
        except (KafkaError, OSError, TimeoutError) as error:
            problem = error
        else:
            return answer
    raise KafkaError(f"no broker names the topics: {problem!r}")
