"""How far behind a mirror's partitions are, and how they are dealt out to parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec

from keelman.connect.errors import RetriableConnectError
from keelman.connect.records import Offset, TopicPartition
from keelman.engine.clients import with_token
from keelman.engine.partition_offsets import offsets_at
from keelman.kafka.isolation import reads_committed

ASK_SECONDS = 3.0


def backlogs(
    consumer: Mapping[str, Any], admin: Mapping[str, Any], starts: Mapping[TopicPartition, Offset | None]
) -> dict[TopicPartition, int]:
    """Offsets between each start and its partition's end, deleted and aborted records among them.

    `consumer` and `admin` are librdkafka's settings. Raises RetriableConnectError when the source cluster is silent.
    """
    client, committed = AdminClient(with_token(admin)), reads_committed(consumer)
    try:
        ends, begins = (
            offsets_at(spec, starts, client, read_committed=committed, seconds=ASK_SECONDS)
            for spec in (OffsetSpec.latest(), OffsetSpec.earliest())
        )
    except (KafkaException, TimeoutError) as error:
        why = str(error) or f"no answer within {ASK_SECONDS:g} s"
        raise RetriableConnectError(f"the source cluster did not tell how far its partitions reach: {why}") from error
    found = {}
    for one, start in starts.items():
        begin = begins[one] if start is None else max(begins[one], int(start["offset"]) + 1)
        found[one] = max(0, ends[one] - begin)
    return found


def dealt(behind: Mapping[TopicPartition, int], *, slots: int, least: int) -> list[list[TopicPartition]]:
    """Partitions by part, the largest backlog first and always to the part that has least; none when fewer than two
    have any, or all together less than `least`."""
    count = min(slots, sum(1 for records in behind.values() if records > 0))
    if count < 2 or sum(behind.values()) < least:
        return []
    parts: list[list[TopicPartition]] = [[] for _ in range(count)]
    loads = [0] * count
    for one in sorted(behind, key=lambda one: (-behind[one], one)):
        least_loaded = loads.index(min(loads))
        parts[least_loaded].append(one)
        loads[least_loaded] += behind[one]
    return [sorted(part) for part in parts]
