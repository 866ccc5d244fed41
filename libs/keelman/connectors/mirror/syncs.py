"""Publishes offset syncs, MirrorMaker 2's records that map offsets of a source to offsets of its copy."""

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
    """Returns a sync's key: the topic as int16 length and UTF-8, the partition as int32, big-endian
    (OffsetSync.java)."""
    name = partition.topic.encode()
    return struct.pack(f">h{len(name)}si", len(name), name, partition.partition)


def sync_value(upstream: int, downstream: int) -> bytes:
    """Returns a sync's value: the offset in the source topic and the offset in its copy, int64 each."""
    return struct.pack(">qq", upstream, downstream)


class PartitionState:
    """Decides for one partition when a sync is due, by its copy's progress (OffsetSyncWriter.java)."""

    def __init__(self, most_lag: int) -> None:
        self._most_lag = most_lag
        self._downstream = -1
        self._synced = -1

    def due(self, downstream: int, *, skipped: bool) -> bool:
        """Returns whether to sync at a record; `skipped` if source offsets were left out since the last call's
        record."""
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

    The reader notes the last record of every partition in each of its batches. As in MirrorMaker all syncs that are due
    are published, and of the others the last one of each partition at a commit. Syncs are best effort, as there: the
    next sync makes up for a lost one.
    """

    def __init__(self, properties: Mapping[str, str], topic: str, most_lag: int) -> None:
        """`properties` are Java's producer properties. Connects with the first sync: an idle mirror needs no
        producer."""
        self._writer = BestEffortWriter(properties, topic, client_id="offset-syncs", failed=self._lost, partition=0)
        self._topic = topic
        self._most_lag = most_lag
        self._states: dict[TopicPartition, PartitionState] = {}
        self._due: list[tuple[TopicPartition, int, int]] = []
        self._late: dict[TopicPartition, tuple[int, int]] = {}
        self._logged_at = float("-inf")
        self._commits_lost = 0

    def note(self, partition: TopicPartition, upstream: int, downstream: int, *, skipped: bool = False) -> None:
        """Notes a delivered record, which is not committed yet."""
        state = self._states.setdefault(partition, PartitionState(self._most_lag))
        if state.due(downstream, skipped=skipped):
            self._late.pop(partition, None)
            self._due.append((partition, upstream, downstream))
        else:
            self._late[partition] = (upstream, downstream)

    def committed(self) -> None:
        """Publishes the syncs of noted records, which are committed now."""
        ready = [*self._due, *((partition, *offsets) for partition, offsets in self._late.items())]
        self._due, self._late = [], {}
        if ready:
            self._writer.write(
                [(sync_key(partition), sync_value(upstream, downstream)) for partition, upstream, downstream in ready]
            )

    def close(self) -> None:
        """Waits at most a second for syncs that are under way."""
        self._writer.close(1.0)

    def _lost(self, reason: str) -> None:
        self._commits_lost += 1
        if (now := time.monotonic()) - self._logged_at >= LOG_SECONDS:  # a missing topic fails each commit
            _log.warning("offset_sync_lost", topic=self._topic, error=reason, commits=self._commits_lost)
            self._logged_at, self._commits_lost = now, 0
