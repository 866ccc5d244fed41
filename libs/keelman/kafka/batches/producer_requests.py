"""Kafka requests that a producer of finished record batches makes, and their answers.

Sources of all layouts: https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import NamedTuple

from keelman.kafka.error_codes import CODES
from keelman.kafka.wire.fields import NO_TAGS, Fields, compact, varint
from keelman.kafka.wire.requests import WireRequest

_INT32 = struct.Struct(">i")
_PRODUCED = struct.Struct(">ihqqq")
NOT_ATTEMPTED = CODES["OPERATION_NOT_ATTEMPTED"]


class Produced(NamedTuple):
    """A broker's answer for one partition's batch."""

    topic: str
    partition: int
    error_code: int
    base_offset: int
    message: str


class ProduceAnswer(NamedTuple):
    """Answer to Produce 9 to 12. For `throttle_ms` the broker reads nothing more from this connection (KIP-219)."""

    parts: list[Produced]
    throttle_ms: int = 0

    @classmethod
    def decode(cls, data: BytesIO) -> ProduceAnswer:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())

        def one(topic: str) -> Produced:
            partition, error, offset, _append_time, _start_offset = fields.several(_PRODUCED)
            records = []
            for _ in range(fields.count()):
                records.append((fields.int32(), fields.text()))
                fields.tags()
            text = fields.text()
            return Produced(topic, partition, error, offset, _reason(text, records) if records else text)

        return cls(fields.of_partitions(one), fields.int32())


def _reason(message: str, records: Sequence[tuple[int, str]]) -> str:
    """Returns why a batch was refused: the first faulty record, by its index in the batch, and its message.
    The brokers' message for the whole batch only lists the faulty records, as Java prints objects."""
    index, text = records[0]
    others = f", {len(records) - 1} more after it" if len(records) > 1 else ""
    return f"{text or message} (record {index + 1} of its batch{others})"


@dataclass(frozen=True, slots=True)
class Produce(WireRequest, key=0, version=9, answer=ProduceAnswer):
    """Record batches, one for each partition at most: Produce 9, before transaction version 2."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topics: Mapping[str, Sequence[tuple[int, bytearray]]]

    def encode(self) -> bytes:
        """Copies each batch once here, and once more each time the connection prepends bytes."""
        out: list[bytes | bytearray] = [compact(self.transactional_id), struct.pack(">hi", self.acks, self.timeout_ms)]
        out.append(varint(len(self.topics) + 1))
        for topic, parts in self.topics.items():
            out += (compact(topic), varint(len(parts) + 1))
            for partition, batch in parts:
                out += (_INT32.pack(partition), varint(len(batch) + 1), batch, NO_TAGS)
            out.append(NO_TAGS)
        out.append(NO_TAGS)
        return b"".join(out)


@dataclass(frozen=True, slots=True)
class ProduceAdding(Produce, version=12):
    """Produce 12: adds its partitions to the transaction by itself (transaction version 2, KIP-890)."""


class ProducerId(NamedTuple):
    """Answer to InitProducerId 4 and EndTxn 5; with EndTxn 3 there is no producer in it (-1)."""

    error_code: int
    producer_id: int
    epoch: int


class InitProducerIdAnswer(ProducerId):
    """Answer to InitProducerId 4."""

    @classmethod
    def decode(cls, data: BytesIO) -> ProducerId:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        return ProducerId(fields.int16(), fields.int64(), fields.int16())


@dataclass(frozen=True, slots=True)
class InitProducerId(WireRequest, key=22, version=4, answer=InitProducerIdAnswer):
    """Requests a producer id, or a transactional id's next epoch, which fences its former user: InitProducerId 4."""

    transactional_id: str | None
    transaction_timeout_ms: int

    def encode(self) -> bytes:
        """Sends no former producer id and epoch: no transaction is recovered."""
        return compact(self.transactional_id) + struct.pack(">iqh", self.transaction_timeout_ms, -1, -1) + NO_TAGS


class AddPartitionsAnswer(NamedTuple):
    """Answer to AddPartitionsToTxn 3: the error code of each partition."""

    parts: list[tuple[str, int, int]]

    @property
    def error_code(self) -> int:
        """The decisive error code: if one partition is refused, the others are only not attempted."""
        codes = [code for _, _, code in self.parts if code]
        return next((code for code in codes if code != NOT_ATTEMPTED), codes[0] if codes else 0)

    @property
    def refused(self) -> str:
        """The partition with that error code."""
        code = self.error_code
        return next((f"{topic}-{partition}" for topic, partition, its in self.parts if its == code), "")

    @classmethod
    def decode(cls, data: BytesIO) -> AddPartitionsAnswer:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        return cls(fields.of_partitions(lambda topic: (topic, fields.int32(), fields.int16())))


@dataclass(frozen=True, slots=True)
class AddPartitions(WireRequest, key=24, version=3, answer=AddPartitionsAnswer):
    """Adds partitions to the transaction: AddPartitionsToTxn 3, needed before transaction version 2."""

    transactional_id: str
    producer_id: int
    epoch: int
    topics: Mapping[str, Sequence[int]]

    def encode(self) -> bytes:
        """Encodes the request."""
        out = [compact(self.transactional_id), struct.pack(">qh", self.producer_id, self.epoch)]
        out.append(varint(len(self.topics) + 1))
        for topic, partitions in self.topics.items():
            out += (compact(topic), varint(len(partitions) + 1))
            out += map(_INT32.pack, partitions)
            out.append(NO_TAGS)
        out.append(NO_TAGS)
        return b"".join(out)


class EndedPlainly(NamedTuple):
    """Answer to EndTxn 3."""

    @classmethod
    def decode(cls, data: BytesIO) -> ProducerId:
        """Decodes the answer; `data` begins after the header."""
        fields = Fields(data.read())
        fields.int32()  # throttle time
        return ProducerId(fields.int16(), -1, -1)


class EndedWithEpoch(InitProducerIdAnswer):
    """Answer to EndTxn 5, of the same form as that to InitProducerId 4."""


@dataclass(frozen=True, slots=True)
class EndTxn(WireRequest, key=26, version=3, answer=EndedPlainly):
    """Commits or aborts: EndTxn 3, before transaction version 2."""

    transactional_id: str
    producer_id: int
    epoch: int
    commit: bool

    def encode(self) -> bytes:
        """Encodes the request."""
        return compact(self.transactional_id) + struct.pack(">qh?", self.producer_id, self.epoch, self.commit) + NO_TAGS


@dataclass(frozen=True, slots=True)
class EndTxnWithEpoch(EndTxn, version=5, answer=EndedWithEpoch):
    """EndTxn 5: the answer has the producer id and epoch of the next transaction (transaction version 2)."""
