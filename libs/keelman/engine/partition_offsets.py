"""Queries the brokers for the first and last offsets of partitions."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import IsolationLevel
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from keelman.connect.records import TopicPartition


def offsets_at(
    spec: OffsetSpec, partitions: Iterable[TopicPartition], admin: AdminClient, *, read_committed: bool, seconds: float
) -> dict[TopicPartition, int]:
    """Returns the offset that `spec` names of each partition, e.g. its end; with `read_committed` that of committed
    records.

    The brokers have `seconds` to answer. Blocks. Raises KafkaException, TimeoutError.
    """
    level = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    specs = {ClientPartition(*partition): spec for partition in partitions}
    answers = admin.list_offsets(specs, isolation_level=level, request_timeout=seconds)
    return {TopicPartition(p.topic, p.partition): answer.result(seconds + 1).offset for p, answer in answers.items()}
