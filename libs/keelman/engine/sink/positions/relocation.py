"""Finds a new position for a sink whose log was truncated, or whose next records were deleted.

The client library would by itself continue from the last offset that it had fetched: past records that it had fetched
ahead and thrown away, which the sink had not taken yet. So it is set to reset nothing, and reports an error instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError

from keelman.engine.failure import RunFailure

RESET = "auto.offset.reset"
LOST = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE})
"""The client's errors for it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The present state of a log: its begin and end, and the end in it of the leader epoch of the last taken record,
    None when not known."""

    begin: int
    end: int
    epoch_end: int | None = None


def goes_on_at(due: int, log: Found) -> int | None:
    """Returns the offset to read next, in place of `due`; None if `auto.offset.reset` decides, as in Kafka's consumer.

    A position before the lost records is still valid. If the epoch ends before it, the records taken from the epoch's
    end on are gone, and the present records there have not been read (KIP-320).
    """
    at = due if log.epoch_end is None else min(due, log.epoch_end)
    if at < log.begin:
        return None
    if at <= log.end or log.epoch_end is not None:  # a new leader may report an end before the last read record
        return at
    return None


class Reset:
    """The user's `auto.offset.reset`, which is not passed to the client library."""

    def __init__(self, properties: dict[str, Any]) -> None:
        """Removes the policy from the client library's properties."""
        self._policy = str(properties[RESET])
        properties[RESET] = "error"

    def offset(self, where: str, reason: str) -> int:
        """Returns the client library's number for beginning or end. Raises RunFailure if the policy is neither."""
        if self._policy == "error":
            raise RunFailure("TASK_FAILED", f"partition {where}: {reason}, and {RESET} is none", retriable=False)
        return int(OFFSET_END if self._policy == "latest" else OFFSET_BEGINNING)
