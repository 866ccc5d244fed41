"""The interface of a consumer that a sink's writer brings, whose records stay where it has them: in Java's memory, say.

The engine steers it by the methods of the client library's consumer, and reads from it whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as ClientPartition


class OwnRecords(Sequence[Message]):
    """The records of one read, each made a Message when it is accessed, and events with their errors."""

    events: Sequence[tuple[Message, KafkaError]] = ()

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of all keys and values."""

    @abstractmethod
    def last_of_each(self) -> Mapping[tuple[str, int], Any]:
        """By topic and partition where its last record is: its `offset()` and its `leader_epoch()`."""


@dataclass(frozen=True, slots=True)
class ConsumerOrder:
    """The properties of such a consumer, in the names of Java's clients, and its callbacks. It calls `on_commit` for
    each commit that was not waited for, with an error or None, and `on_error` with what refuses it; both within its
    methods."""

    properties: Mapping[str, str]
    on_commit: Callable[[KafkaError | None, list[ClientPartition]], None]
    on_error: Callable[[KafkaError], None]


@runtime_checkable
class ReadsWhole(Protocol):
    """A consumer that returns all records of a read as one OwnRecords."""

    def read(self, most: int, seconds: float) -> OwnRecords:
        """At most so many records; waits so long for the first."""


@runtime_checkable
class BringsConsumer(Protocol):
    """A writer that does."""

    def open_consumer(self, order: ConsumerOrder) -> Any:
        """A consumer with the methods that the engine calls of the client library's, and `read`."""
