"""Publishes offset syncs, MirrorMaker 2's records of which offset of a copy answers to which of its source."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping

from keelman.connect.records import TopicPartition
from keelman.engine.best_effort_writer import BestEffortWriter
from keelman.runtime.logs.logging import get_logger

_log = get_logger()
LOG_SECONDS = 10.0


def sync_key(partition: TopicPartition) -> bytes:
    """Key of a sync: the topic as int16 length and UTF-8, the partition as int32, big-endian (OffsetSync.java)."""
    name = partition.topic.encode()
    return struct.pack(f">h{len(name)}si", len(name), name, partition.partition)


def sync_value(upstream: int, downstream: int) -> bytes:
    """Value of a sync: the offset in the source topic and the one in its copy, int64 each."""
    return struct.pack(">qq", upstream, downstream)


class PartitionState:
    """Decides for one partition when its copy has gone on so far that a sync is due (OffsetSyncWriter.java)."""

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._downstream = -1
        self._synced = -1

    def due(self, downstream: int, *, skipped: bool) -> bool:
        """Whether to sync at a record; `skipped` when source offsets were left out since the last one asked for."""
        due = (
            self._synced == -1
            or downstream - (self._synced + 1) >= self._most_lag
            or skipped
            or downstream < self._downstream
        )
        if due:
            self._synced = downstream
        self._downstream = downstream
        return due


class OffsetSyncs:
    """Notes offsets as records are delivered, and publishes them once the records are committed.

    The reader asks for the offset of the last record of every partition that it reads at once. As in MirrorMaker the
    ones that are due are all published, of the others the last one of each partition at a commit. Syncs are best
    effort, there as here: one that is lost is made up for by the next.
    """

    def __init__(self, properties: Mapping[str, str], topic: str, most_lag: int) -> None:
        """`properties` are Java's, of a producer, which connects with the first sync: an idle mirror needs none."""
        self._writer = BestEffortWriter(properties, topic, client_id="offset-syncs", failed=self._lost, partition=0)
        self._topic = topic
        self._most_lag = most_lag
        self._states: dict[TopicPartition, PartitionState] = {}
        self._due: list[tuple[TopicPartition, int, int]] = []
        self._late: dict[TopicPartition, tuple[int, int]] = {}
        self._logged_at = float("-inf")
        self._commits_lost = 0

    def note(self, partition: TopicPartition, upstream: int, downstream: int, *, skipped: bool = False) -> None:
        """A record was delivered; it is not committed yet."""
        state = self._states.setdefault(partition, PartitionState(self._most_lag))
        if state.due(downstream, skipped=skipped):
            self._late.pop(partition, None)
            self._due.append((partition, upstream, downstream))
        else:
            self._late[partition] = (upstream, downstream)

    def committed(self) -> None:
        """What was noted is committed."""
        ready = [*self._due, *((partition, *offsets) for partition, offsets in self._late.items())]
        self._due, self._late = [], {}
        if ready:
            self._writer.write(
                [(sync_key(one), sync_value(upstream, downstream)) for one, upstream, downstream in ready]
            )

    def close(self) -> None:
        """Waits a second for what is under way."""
        self._writer.close(1.0)

    def _lost(self, why: str) -> None:
        self._commits_lost += 1
        if (now := time.monotonic()) - self._logged_at >= LOG_SECONDS:  # a topic that is not there fails each commit
            _log.warning("offset_sync_lost", topic=self._topic, error=why, commits=self._commits_lost)
            self._logged_at, self._commits_lost = now, 0
