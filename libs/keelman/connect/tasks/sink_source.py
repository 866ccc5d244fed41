"""Lets a sink's writer steer the reading of its topics: seek, pause, resume, retry, and report bad records."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol, TypeVar

from keelman.connect.bad_records.tolerance import Stage
from keelman.connect.records import Headers, TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WrittenRecord:
    """A record that was written in some batch before: where it is in Kafka, and what a dead letter holds of it."""

    place: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int | None = None


class SinkSource(Protocol):
    """Steers the reading of one task's topics. To be asked within the methods of its writer only, in the thread that
    calls them."""

    @property
    def draining(self) -> bool:
        """Whether the run is to end soon: what may pass is not waited for."""

    def attend(self) -> None:
        """Keeps the task's place in its group while a write takes long. Raises GaveUp when what is being written is
        another task's by now: it will be read again."""

    @property
    def commit_seconds(self) -> float:
        """The time until the next commit is due; 0 once it is."""

    def commit_when_due(self) -> None:
        """Has what was written before committed where that is due, while what is being written waits to be tried
        again."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """The next records of this partition are those from there on, and its group follows."""

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing of these is read until they are resumed, or assigned the next time."""

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """These are read again."""

    def retry(self, work: Callable[[], T]) -> T:
        """What the work gives; while it raises RetriableConnectError it is done again for as long as `errors.retry.*`
        say."""

    def report(self, index: int, error: Exception, stage: Stage) -> None:
        """The record with this index of the batch that is being written cannot be taken by a step of the writer's own.
        Does what `errors.tolerance` says, or raises what fails the task."""

    def report_written(self, record: WrittenRecord, error: Exception) -> None:
        """The same for a record of some batch before."""
