"""Finds the coordinator of a group or a transactional id: queries brokers in turn, as a lost host is silent."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from aiokafka.client import CoordinationType
from aiokafka.errors import for_code
from aiokafka.protocol.coordination import FindCoordinatorRequest

from keelman.kafka.clients import Client
from keelman.kafka.reaching import first_answer, silent_nodes

ANSWER_SECONDS, NEXT_SECONDS = 2.0, 0.5
"""The time limit of one broker's answer, and the time after which the next broker is queried in parallel."""
GROUP, TRANSACTION = CoordinationType.GROUP, CoordinationType.TRANSACTION


async def coordinator_of(client: Client, kind: CoordinationType, key: str) -> int:
    """Returns the broker's id. Raises KafkaError, and OSError when the last of them does not answer."""

    async def ask(node: Any) -> Any:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await client.send(node, FindCoordinatorRequest(key, kind))

    answer = await first_answer(_in_turn(client), ask, seconds=NEXT_SECONDS)
    if answer.error_code:
        raise for_code(answer.error_code)()
    return int(answer.coordinator_id)


def _in_turn(client: Client) -> list[Any]:
    """Returns all known brokers: first those without a waiting request, last those that were silent recently."""
    brokers = list(client.cluster.brokers())
    silent = silent_nodes(brokers)
    nodes = [broker.nodeId for broker in brokers]
    random.shuffle(nodes)
    waiting: dict[Any, int] = {}
    for (node, _), connection in client._conns.items():
        waiting[node] = waiting.get(node, 0) + len(connection._requests)
    return sorted(nodes, key=lambda node: (node in silent, waiting.get(node, 0) > 0))
