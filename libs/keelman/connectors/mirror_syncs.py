"""Offset syncs: which offset of a copy answers to which offset of its source, in MirrorMaker 2's own records."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from keelman.connect.records import TopicPartition
from keelman.engine.clients import with_token
from keelman.runtime.logging import get_logger

_log = get_logger()


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

    def __init__(self, settings: Mapping[str, Any], topic: str, most_lag: int) -> None:
        """The producer is opened at the first sync: a mirror that is idle needs none."""
        self._settings = {**settings, "linger.ms": 5, "queue.buffering.max.kbytes": 1024}
        self._topic = topic
        self._most_lag = most_lag
        self._producer: Producer | None = None
        self._states: dict[TopicPartition, PartitionState] = {}
        self._due: list[tuple[TopicPartition, int, int]] = []
        self._late: dict[TopicPartition, tuple[int, int]] = {}

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
        if self._producer is None:
            if not ready:
                return
            self._producer = Producer({**with_token(self._settings), "on_delivery": self._delivered})
        try:
            for partition, upstream, downstream in ready:
                self._producer.produce(self._topic, sync_value(upstream, downstream), sync_key(partition), 0)
        except (BufferError, KafkaException) as error:
            _log.warning("offset_sync_lost", topic=self._topic, error=str(error))
        self._producer.poll(0)

    def close(self) -> None:
        """Waits a second for what is under way."""
        if self._producer is not None:
            self._producer.flush(1.0)
            self._producer.purge()
            self._producer = None

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        if error is not None:
            _log.warning("offset_sync_lost", topic=self._topic, error=error.str())
