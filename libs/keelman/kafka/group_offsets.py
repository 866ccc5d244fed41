"""Committed offsets of a group without members, written again as they are: brokers forget what is old."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka.client import CoordinationType
from aiokafka.errors import KafkaError, NoError, for_code
from aiokafka.protocol.commit import OffsetCommitRequest

from keelman.kafka.clients import admin_client, low_level_client
from keelman.model.errors import FailedPrecondition, Unavailable

REQUEST_MS = 10_000
NOBODY = (OffsetCommitRequest.DEFAULT_GENERATION_ID, "")


async def write_again(properties: Mapping[str, str], group: str, *, client_id: str) -> int:
    """Commits what is committed; how many partitions that were. `properties` are Java's client properties.

    Raises FailedPrecondition while the group has members, Unavailable when its coordinator does not answer.
    """
    try:
        async with admin_client(properties, client_id=client_id) as admin:
            committed = await admin.list_consumer_group_offsets(group)
        topics: dict[str, list[tuple[int, int, str]]] = {}
        for tp, told in committed.items():
            if told.offset >= 0:
                topics.setdefault(tp.topic, []).append((tp.partition, told.offset, told.metadata or ""))
        if not topics:
            return 0
        async with low_level_client(properties, client_id=client_id, timeout_ms=REQUEST_MS) as client:
            coordinator = await client.coordinator_lookup(CoordinationType.GROUP, group)
            answer = await client.send(coordinator, OffsetCommitRequest(group, *NOBODY, -1, list(topics.items())))
    except (KafkaError, OSError) as error:
        raise Unavailable(f"offsets of group {group} cannot be written again: {error!r}") from None
    refused = [for_code(code) for _, parts in answer.topics for _, code in parts if for_code(code) is not NoError]
    if refused:
        raise FailedPrecondition(f"offsets of group {group} cannot be written again: {refused[0].__name__}")
    return sum(len(parts) for parts in topics.values())
