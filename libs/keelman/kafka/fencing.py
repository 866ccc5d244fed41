"""Fences producers by their transactional ids, many at once over one client: InitProducerId, as Connect's leader does.

This also aborts transactions that a dead producer has left open, so that no reader waits for them any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from keelman.kafka.batches.coordinator import Coordinator
from keelman.kafka.batches.produce_failure import ProduceFailure
from keelman.kafka.batches.producer_requests import InitProducerId, ProducerId
from keelman.kafka.clients import Client, low_level_client
from keelman.model.errors import Unavailable
from keelman.runtime.supervise import deadline, supervise

REQUEST_MS = 10_000
TRANSACTION_MS = 1
"""A fencing producer opens no transaction. Every broker allows this, whatever its `transaction.max.timeout.ms`."""
ATTEMPT_SECONDS = 2.0


async def fence_all(
    properties: Mapping[str, str], transactional_ids: Sequence[str], *, client_id: str, seconds: float
) -> None:
    """Returns when none of them can commit any more. `properties` are Java's client properties of the producers'
    cluster. Raises Unavailable if this was not achieved in time, InvalidArgument for illegal properties."""
    late = Unavailable(f"producers {', '.join(transactional_ids)} could not be fenced within {seconds:g} s")
    async with (
        deadline(seconds, late),
        low_level_client(properties, client_id=client_id, timeout_ms=REQUEST_MS) as client,
    ):
        await supervise(*(partial(_fence, client, identifier, 2 * seconds) for identifier in transactional_ids))


async def _fence(client: Client, transactional_id: str, seconds: float) -> None:
    coordinator = Coordinator(client, transactional_id, ATTEMPT_SECONDS)
    try:
        await coordinator.ask(InitProducerId(transactional_id, TRANSACTION_MS), ProducerId, seconds=seconds)
    except ProduceFailure as error:
        raise Unavailable(f"producer {transactional_id} cannot be fenced: {error.name}") from None
