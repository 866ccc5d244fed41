"""Requests from leaders the first and end offsets of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from aiokafka.errors import KafkaError

from keelman.kafka.clients import Client
from keelman.kafka.fetching.position import EARLIEST, LATEST
from keelman.kafka.fetching.position_checks import offsets_of
from keelman.kafka.leaders.metadata import Part, TopicInfo


async def log_bounds(
    client: Client, parts: Collection[Part], topics: Mapping[str, TopicInfo], *, isolation: int
) -> dict[Part, tuple[int, int]]:
    """Returns the first and end offset of each, the last stable offset if `isolation` is 1; leaves out partitions whose
    leaders do not answer. `topics` has the leaders."""
    by_node: dict[int, dict[Part, int]] = {}
    for topic, number in parts:
        leader = topics[topic].partitions.get(number) if topic in topics else None
        if leader is not None and leader.node >= 0:
            by_node.setdefault(leader.node, {})[topic, number] = leader.epoch
    answers = await asyncio.gather(*(_of_leader(client, node, led, isolation) for node, led in by_node.items()))
    return {part: bounds for answer in answers for part, bounds in answer.items()}


async def _of_leader(client: Client, node: int, led: Mapping[Part, int], isolation: int) -> dict[Part, tuple[int, int]]:
    try:
        begins, ends = [
            await offsets_of(client, node, isolation, {part: (where, epoch) for part, epoch in led.items()})
            for where in (EARLIEST, LATEST)
        ]
    except (KafkaError, OSError, TimeoutError):
        return {}
    return {
        part: (begins[part].offset, ends[part].offset) for part in led if not (begins[part].code or ends[part].code)
    }
