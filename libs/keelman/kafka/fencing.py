"""Fences producers by their transactional ids, many at once over one client: InitProducerId, as Connect's leader does.

Fenced is also what a dead producer has left open: the coordinator aborts it, so that nobody waits for it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

from aiokafka.client import CoordinationType
from aiokafka.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    KafkaError,
    NoError,
    NotCoordinatorError,
    for_code,
)
from aiokafka.protocol.transaction import InitProducerIdRequest

from keelman.kafka.clients import Client, low_level_client
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.supervise import deadline, supervise

REQUEST_MS = 10_000
TRANSACTION_MS = 10_000
AGAIN = (
    ConcurrentTransactions,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)


async def fence_all(
    properties: Mapping[str, str], transactional_ids: Sequence[str], *, client_id: str, seconds: float
) -> None:
    """Returns when none of them can commit any more. `properties` are Java's client properties of the producers'
    cluster. Raises Unavailable when that could not be had in time, InvalidArgument for illegal properties."""
    late = Unavailable(f"producers {', '.join(transactional_ids)} could not be fenced within {seconds:g} s")
    async with (
        deadline(seconds, late),
        low_level_client(properties, client_id=client_id, timeout_ms=REQUEST_MS) as client,
    ):
        await supervise(*(partial(_fence, client, one) for one in transactional_ids))


async def _fence(client: Client, transactional_id: str) -> None:
    backoff = Backoff(first=0.02, most=1.0)
    while True:
        try:
            coordinator = await client.coordinator_lookup(CoordinationType.TRANSACTION, transactional_id)
            answer = await client.send(coordinator, InitProducerIdRequest(transactional_id, TRANSACTION_MS))
            problem = for_code(answer.error_code)
            if problem is NoError:
                return
            if problem not in AGAIN:
                raise Unavailable(f"producer {transactional_id} cannot be fenced: {problem.__name__}")
        except (KafkaError, OSError, AssertionError):
            await client.force_metadata_update()
        await asyncio.sleep(backoff.next())
