"""Asks one broker whether it answers: a light question without a client's background work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """What a broker said: the cluster's registered and unfenced brokers, and its controller's id (-1: none yet)."""

    brokers: tuple[tuple[int, str, int], ...]
    controller: int

    def serves(self, node_id: int) -> bool:
        """True when that broker has joined its cluster and takes requests of clients."""
        return any(node == node_id for node, _, _ in self.brokers)


async def ask_broker(host: str, port: int, *, seconds: float = 2.0) -> BrokerAnswer | None:
    """One Metadata request without topics over a plain connection; None when no broker answers in that time."""
    connection = None
    try:
        async with asyncio.timeout(seconds):
            connection = await create_conn(
                host, port, client_id="keelman-probe", request_timeout_ms=int(seconds * 1000)
            )
            reply = await connection.send(MetadataRequest([], False))
    except (OSError, TimeoutError, KafkaError, asyncio.IncompleteReadError):
        return None
    finally:
        if connection is not None:
            connection.close()
    return BrokerAnswer(tuple((b[0], b[1], b[2]) for b in reply.brokers), int(reply.controller_id))


async def broker_answers(bootstrap: str, *, seconds: float = 2.0) -> bool:
    """True when any of the bootstrap servers (host:port, comma-separated) knows at least one broker; all are asked at
    once, as one whose host is gone is silent."""

    async def answers(server: str) -> bool:
        host, _, port = server.strip().rpartition(":")
        answer = await ask_broker(host.strip("[]"), int(port), seconds=seconds)
        return answer is not None and bool(answer.brokers)

    asking = [asyncio.create_task(answers(server)) for server in bootstrap.split(",")]
    try:
        for one in asyncio.as_completed(asking):
            if await one:
                return True
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return False
