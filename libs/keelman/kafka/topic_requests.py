"""Kafka requests that create a topic and change its configuration, which the client library does not offer as needed.

Sources: the layouts of CreateTopics 7 and IncrementalAlterConfigs 1 in
https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from io import BytesIO

from keelman.kafka.wire.fields import NO_TAGS, Fields, compact, varint
from keelman.kafka.wire.requests import WireRequest

_NO_ID = bytes(16)
_TOPIC, _BROKER = b"\x02", b"\x04"
_SET, _DELETE = b"\0", b"\1"
TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """Answer to CreateTopics 7, for one topic: its id, or Kafka's error code with the brokers' message."""

    topic_id: str
    code: int
    message: str

    @classmethod
    def decode(cls, data: BytesIO) -> CreatedTopic:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        fields.count()
        fields.text()
        raw, code, message = fields.raw(16), fields.int16(), fields.text()
        return cls("" if raw == _NO_ID else base64.urlsafe_b64encode(raw).decode().rstrip("="), code, message)


@dataclass(frozen=True, slots=True)
class CreateTopic(WireRequest, key=19, version=7, answer=CreatedTopic):
    """Creates one topic: CreateTopics 7, supported since Kafka 2.8. -1 partitions or replicas mean the brokers'
    default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Encodes the request without its header."""
        configs = b"".join(compact(key) + compact(value) + NO_TAGS for key, value in self.config.items())
        topic = compact(self.name) + struct.pack(">ih", self.partitions, self.replication_factor) + varint(1)
        topic += varint(len(self.config) + 1) + configs + NO_TAGS
        return varint(2) + topic + struct.pack(">i", TIMEOUT_MS) + b"\0" + NO_TAGS


@dataclass(frozen=True, slots=True)
class ConfigChanged:
    """Answer to IncrementalAlterConfigs 1, for one topic or broker: Kafka's error code with the brokers' message."""

    code: int
    message: str

    @classmethod
    def decode(cls, data: BytesIO) -> ConfigChanged:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        fields.count()
        return cls(fields.int16(), fields.text())


@dataclass(frozen=True, slots=True)
class ChangeConfig(WireRequest, key=44, version=1, answer=ConfigChanged):
    """Sets some keys of one topic, or of the broker with an id, and resets others to the default:
    IncrementalAlterConfigs 1."""

    name: str
    set: Mapping[str, str]
    unset: Collection[str] = ()
    of_broker: bool = False

    def encode(self) -> bytes:
        """Encodes the request without its header."""
        changes = [compact(key) + _SET + compact(value) + NO_TAGS for key, value in self.set.items()]
        changes += [compact(key) + _DELETE + compact(None) + NO_TAGS for key in self.unset]
        resource = (
            (_BROKER if self.of_broker else _TOPIC)
            + compact(self.name)
            + varint(len(changes) + 1)
            + b"".join(changes)
            + NO_TAGS
        )
        return varint(2) + resource + b"\0" + NO_TAGS
