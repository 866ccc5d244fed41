"""The offsets that a sink keeps with its data, whose they are, and for which partitions a task may keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from keelman.connect.records import TopicPartition


@dataclass(frozen=True, slots=True)
class KeptOffset:
    """The position in one partition that an exactly-once writer keeps beside its data.

    `offset` is the next record to read. `mirrored` are the offsets that the group may show for it: the last one known
    to be committed there and any that were sent since; None stands for no committed offset at all, a number below 0
    for an offset that was set or reset through REST. `topic_id` is the id of the topic that was read, empty where it is
    not known, and `leader_epoch` the epoch of the last record before `offset`, -1 where it is not known: a topic that
    is deleted and created again has another id (KIP-516), a log that has lost its end has another end of that epoch
    (KIP-320).
    """

    offset: int
    mirrored: tuple[int | None, ...]
    topic_id: str = ""
    leader_epoch: int = -1


class SinkReader(NamedTuple):
    """Who reads for a sink: what one of them keeps means nothing to another, though their connectors have one name."""

    workers: str
    """The `group.id` of the worker cluster; empty for a standalone worker."""
    group: str
    """The consumer group that the sink's tasks are in."""
    cluster: str
    """The id of the Kafka cluster that is read."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions that the group gave a task, each with what the group shows for it (as `KeptOffset.mirrored`)."""

    reader: SinkReader
    offsets: Mapping[TopicPartition, int | None]
