"""The offsets that a sink keeps with its data, their owner, and the partitions for which a task may keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keelman.connect.records import TopicPartition


@dataclass(frozen=True, slots=True)
class KeptOffset:
    """The position in one partition that an exactly-once writer keeps beside its data.

    `offset` is the next record to read. `mirrored` are the offsets that the group may show for it: the last one known
    to be committed there and any sent since; None means no committed offset at all, a number below 0
    an offset that was set or reset through REST. `topic_id` is the id of the topic that was read, empty if not
    known, and `leader_epoch` the epoch of the last record before `offset`, -1 if not known: a topic that
    is deleted and created again has another id (KIP-516), a log that has lost its end has another end of that epoch
    (KIP-320).
    """

    offset: int
    mirrored: tuple[int | None, ...]
    topic_id: str = ""
    leader_epoch: int = -1


class SinkReader(NamedTuple):
    """A sink's reader: offsets kept by one mean nothing to another, even if their connectors have the same name."""

    workers: str
    """The `group.id` of the worker cluster; empty for a standalone worker."""
    group: str
    """The consumer group of the sink's tasks."""
    cluster: str
    """The id of the Kafka cluster that is read."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions that the group gave a task, each with the group's offset for it (as `KeptOffset.mirrored`)."""

    reader: SinkReader
    offsets: Mapping[TopicPartition, int | None]
