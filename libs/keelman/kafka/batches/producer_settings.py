"""The settings of a producer of finished record batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_IN_FLIGHT = 5
"""A broker recognises only the last five batches of a producer's partition."""


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """`transactional_id` None: no transactions. With `acks` other than -1 the brokers recognise no repeated batch: each
    partition has one batch in flight at a time, and a repeated batch may be in the log twice."""

    transactional_id: str | None = None
    transaction_timeout_ms: int = 10_000
    delivery_timeout_ms: int = 120_000
    """How long a batch is tried while nothing at all is delivered and no quota delays it; never beyond its
    transaction."""
    request_timeout_ms: int = 30_000
    max_in_flight: int = MAX_IN_FLIGHT
    """Requests per broker."""
    most_waiting_bytes: int = 16 << 20
    """The limit of bytes queued and in flight; `room` waits until there are fewer."""
    acks: int = -1

    @property
    def transaction_seconds(self) -> float:
        """How long after its first batch a transaction may still send: until a second before its time-out;
        unlimited without transactions."""
        if self.transactional_id is None:
            return math.inf
        return max(1.0, self.transaction_timeout_ms / 1000 - 1.0)
