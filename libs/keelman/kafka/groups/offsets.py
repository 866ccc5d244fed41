"""Requests about a group's committed offsets: aiokafka's own leave out leader epochs, and it has none to delete.

Sources: https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message, OffsetFetchRequest.json,
OffsetCommitRequest.json and OffsetDeleteRequest.json (KIP-496); leader epochs by KIP-320.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from keelman.kafka.groups.requests import request_of
from keelman.kafka.leaders.metadata import NO_EPOCH

TopicPart: TypeAlias = tuple[str, int]
_TEXT = String("utf-8")


def _topics(*fields: Any) -> tuple[str, Array]:
    """Defines a field with topics, and with these fields for each partition."""
    return "topics", Array(("name", _TEXT), ("partitions", Array(*fields)))


_OUTCOMES = _topics(("partition", Int32), ("error_code", Int16))
_OFFSETS = (("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", _TEXT))
_FETCH = request_of(
    *("OffsetFetch", 9, 5),
    Schema(("group", _TEXT), _topics(Int32)),
    Schema(("throttle_time_ms", Int32), _topics(*_OFFSETS, ("error_code", Int16)), ("error_code", Int16)),
)
_COMMIT = request_of(
    *("OffsetCommit", 8, 6),
    Schema(("group", _TEXT), ("generation", Int32), ("member", _TEXT), _topics(*_OFFSETS)),
    Schema(("throttle_time_ms", Int32), _OUTCOMES),
)
_DELETE = request_of(
    *("OffsetDelete", 47, 0),
    Schema(("group", _TEXT), _topics(Int32)),
    Schema(("error_code", Int16), ("throttle_time_ms", Int32), _OUTCOMES),
)
_NOBODY = (-1, "")
"""The generation and the member of a client that commits from outside the group."""


class Committed(NamedTuple):
    """A group's committed offset for a partition: the offset to read next, -1 for none; its note; the leader
    epoch of the record before it, -1 if unknown."""

    offset: int
    note: str = ""
    leader_epoch: int = NO_EPOCH


def fetch_offsets(group: str) -> Any:
    """Returns a request for all committed offsets of a group."""
    return _FETCH(group, None)


def committed(answer: Any) -> dict[TopicPart, Committed]:
    """Decodes an answer to OffsetFetch; leaves out partitions that have neither an offset nor a note."""
    entries = {
        (topic, partition): Committed(offset, note or "", epoch)
        for topic, parts in answer.topics
        for partition, offset, epoch, note, _ in parts
    }
    return {where: entry for where, entry in entries.items() if entry.offset >= 0 or entry.note}


def commit_offsets(group: str, offsets: Mapping[TopicPart, Committed]) -> Any:
    """Returns a request that commits from outside: the group must have no members."""
    topics: dict[str, list[tuple[int, int, int, str]]] = {}
    for (topic, partition), entry in offsets.items():
        topics.setdefault(topic, []).append((partition, entry.offset, entry.leader_epoch, entry.note))
    return _COMMIT(group, *_NOBODY, list(topics.items()))


def delete_offsets(group: str, partitions: Iterable[TopicPart]) -> Any:
    """Returns a request that deletes the offsets of these partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return _DELETE(group, list(topics.items()))
