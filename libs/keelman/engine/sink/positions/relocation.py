"""Finds a new position for a sink whose log was truncated, or whose next records were deleted.

The client library would go on by itself, from the place that it had fetched to: past records that it had fetched ahead
and thrown away, which no one had taken yet. So it is set to reset nothing, and says so instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError

from keelman.engine.failure import RunFailure

RESET = "auto.offset.reset"
LOST = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE})
"""The client's words for it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A log as it is now: where it begins and ends, and where the leader epoch ends in it of the last record that was
    taken, None when not known."""

    begin: int
    end: int
    epoch_end: int | None = None


def goes_on_at(due: int, log: Found) -> int | None:
    """The offset to read next, where `due` was; None where `auto.offset.reset` decides, as in Kafka's consumer.

    A place before the records that are gone is still good. Where the epoch ends before it, what was taken from there on
    is gone, and what is there now has not been read (KIP-320).
    """
    at = due if log.epoch_end is None else min(due, log.epoch_end)
    if at < log.begin:
        return None
    if at <= log.end or log.epoch_end is not None:  # a new leader may report an end that lies before what was read
        return at
    return None


class Reset:
    """The user's `auto.offset.reset`, which is not passed to the client library."""

    def __init__(self, properties: dict[str, Any]) -> None:
        """Takes it out of the client library's properties."""
        self._policy = str(properties[RESET])
        properties[RESET] = "error"

    def offset(self, where: str, why: str) -> int:
        """The client library's number for the beginning or the end. Raises RunFailure where the user wants neither."""
        if self._policy == "error":
            raise RunFailure("TASK_FAILED", f"partition {where}: {why}, and {RESET} is none", retriable=False)
        return int(OFFSET_END if self._policy == "latest" else OFFSET_BEGINNING)
