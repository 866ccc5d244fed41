"""Reads how long the brokers let a transaction stay open."""

from __future__ import annotations

from aiokafka.admin.config_resource import ConfigResourceType
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import DescribeConfigsRequest

from keelman.kafka.clients import Client

KEY = "transaction.max.timeout.ms"


async def longest_transaction_ms(client: Client) -> int | None:
    """Returns the limit of one of the brokers; None if it does not report it, e.g. for lack of rights."""
    node = client.get_random_node()
    try:
        answer = await client.send(node, DescribeConfigsRequest([(ConfigResourceType.BROKER.value, str(node), [KEY])]))
    except (KafkaError, OSError, TimeoutError):
        return None
    return next((int(entry[1]) for *_, entries in answer.resources for entry in entries if entry[0] == KEY), None)


def refused_length(wanted_ms: int, limit_ms: int | None) -> str:
    """Returns a message with the requested length and the brokers' limit, if known."""
    allowed = " allows" if limit_ms is None else f"={limit_ms}"
    return f"transaction.timeout.ms={wanted_ms} is more than the brokers' {KEY}{allowed}"
