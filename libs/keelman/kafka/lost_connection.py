"""The library's way to send a request, where its connection is gone before it times out."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaClient
from aiokafka.client import ConnectionGroup
from aiokafka.errors import RequestTimedOutError

_send = AIOKafkaClient.send


async def send(client: AIOKafkaClient, node: int, request: Any, *, group: Any = ConnectionGroup.DEFAULT) -> Any:
    """As `AIOKafkaClient.send`, in whose place `clients` puts it. Raises KafkaError.

    The library closes the connection of a request that had no answer in time, and looks for it by its broker. Another
    request that went out in the same moment may have closed it and begun to connect again: then there is none, and the
    KeyError would end whoever sent, the client's own task that follows the brokers for one.
    """
    try:
        return await _send(client, node, request, group=group)
    except KeyError as error:
        if error.args != ((node, group),):
            raise
        raise RequestTimedOutError from None
