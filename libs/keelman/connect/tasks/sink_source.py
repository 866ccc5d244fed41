"""Lets a sink's writer steer the reading of its topics: seek, pause, resume, retry, and report bad records."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, TypeVar

from keelman.connect.failed_record import Stage
from keelman.connect.records import Headers, TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """A record of an earlier batch: its position in Kafka, and its content for a dead letter."""

    place: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class SinkSource(Protocol):
    """Steers the reading of one task's topics. Used only within the methods of its writer, in the thread that
    calls them."""

    @property
    def draining(self) -> bool:
        """Whether the run ends soon: then transient errors are not waited out."""

    def attend(self) -> None:
        """Keeps the task's membership in its group during a long write. Raises GaveUp when the partitions being
        written belong to another task by now: the records will be read again."""

    @property
    def commit_seconds(self) -> float:
        """Returns the seconds until the next commit is due; 0 once it is."""

    def commit_when_due(self) -> None:
        """Commits the earlier records if that is due, while the current ones wait for another try."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continues this partition at `offset`; its group's committed offset follows."""

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading these partitions until they are resumed or assigned again."""

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Reads these partitions again."""

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`; while it raises RetriableConnectError, it is repeated as long as
        `errors.retry.*` allow."""

    def report(self, index: int, error: Exception, stage: Stage) -> None:
        """Reports a record, by its index in the batch being written, that a step of the writer's own cannot take.
        Applies `errors.tolerance`, or raises the error that fails the task."""

    def report_written(self, record: WrittenRecord, error: Exception) -> None:
        """Reports a record of an earlier batch in the same way."""
