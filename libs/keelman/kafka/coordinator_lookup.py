"""Who coordinates a group or a transactional id: brokers are asked in turn, as one whose host is gone is silent."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from aiokafka.client import CoordinationType
from aiokafka.errors import KafkaError, NodeNotReadyError, for_code
from aiokafka.protocol.coordination import FindCoordinatorRequest

from keelman.kafka.clients import Client

ANSWER_SECONDS = 2.0
GROUP, TRANSACTION = CoordinationType.GROUP, CoordinationType.TRANSACTION


async def coordinator_of(client: Client, kind: CoordinationType, key: str) -> int:
    """The broker's id. Raises KafkaError, and OSError when the last of them does not answer."""
    problem: Exception = NodeNotReadyError("no broker is known")
    for node in _in_turn(client):
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await client.send(node, FindCoordinatorRequest(key, kind))
        except (KafkaError, OSError) as error:
            problem = error
            continue
        if answer.error_code:
            raise for_code(answer.error_code)()
        return int(answer.coordinator_id)
    raise problem


def _in_turn(client: Client) -> list[Any]:
    """All known brokers: first those that keep no other request waiting."""
    nodes = [broker.nodeId for broker in client.cluster.brokers()]
    random.shuffle(nodes)
    waiting: dict[Any, int] = {}
    for (node, _), connection in client._conns.items():
        waiting[node] = waiting.get(node, 0) + len(connection._requests)
    return sorted(nodes, key=lambda node: waiting.get(node, 0) > 0)
