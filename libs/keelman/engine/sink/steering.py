"""Steers a sink's consumer for its writer: pauses and resumes at once, seeks once the writer's method has returned."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from keelman.connect.failed_record import Stage
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.sink_source import WrittenRecord
from keelman.engine.control import Control
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling

T = TypeVar("T")


class Steering:
    """Steers the consumer of one copy run; its thread alone uses it. A SinkSource for the writer."""

    def __init__(
        self,
        control: Control,
        pipeline: SinkPipeline,
        polling: Callable[[], Polling],
        commits: Callable[[], SinkCommits],
    ) -> None:
        """`polling` and `commits` are there once the writer is open."""
        self._control = control
        self._pipeline = pipeline
        self._polling = polling
        self._commits = commits
        self._seeks: dict[TopicPartition, int] = {}
        self._moved: set[TopicPartition] = set()

    def take_moved(self) -> set[TopicPartition]:
        """Returns the partitions that were sought in or paused since the last call, whose read records are void."""
        taken, self._moved = self._moved, set()
        return taken

    def take_seeks(self) -> dict[TopicPartition, int]:
        """Returns the seeks since the last call."""
        taken, self._seeks = self._seeks, {}
        return taken

    @property
    def draining(self) -> bool:
        """Whether the run was ordered to drain."""
        return self._control.draining

    def attend(self) -> None:
        """Polls without reading. Raises GaveUp."""
        self._polling().attend_in_batch()

    @property
    def commit_seconds(self) -> float:
        """The time until the next commit."""
        return self._commits().clock.left_seconds

    def commit_when_due(self) -> None:
        """Commits earlier writes if that is due."""
        self._commits().commit_when_due()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Notes a seek: done after the writer's method, if the partition is still this task's."""
        self._seeks[partition] = offset
        self._moved.add(partition)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Pauses these partitions at once."""
        self._polling().hold(partitions)
        self._moved.update(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Resumes these partitions at once, unless all are paused for another reason."""
        self._polling().release(partitions)

    def retry(self, work: Callable[[], T]) -> T:
        """Returns the result of `work`, retried as `errors.retry.*` allow."""
        return self._pipeline.retry(work)

    def report(self, index: int, error: Exception, stage: Stage) -> None:
        """Reports a bad record of the batch that is being written."""
        self._pipeline.report(index, error, stage)

    def report_written(self, record: WrittenRecord, error: Exception) -> None:
        """Reports a bad record of an earlier batch."""
        self._pipeline.report_written(record, error)
