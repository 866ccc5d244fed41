"""Requests about a group's committed offsets: aiokafka's own leave out leader epochs, and it has none that deletes.

Sources: https://github.com/apache/kafka/tree/4.3/clients/src/main/resources/common/message, OffsetFetchRequest.json,
OffsetCommitRequest.json and OffsetDeleteRequest.json (KIP-496); leader epochs by KIP-320.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int16, Int32, Int64, Schema, String

from keelman.kafka.fetching.leader_epochs import NO_EPOCH

TopicPart: TypeAlias = tuple[str, int]
_TEXT = String("utf-8")
_OF_PARTITIONS = Schema(("group", _TEXT), ("topics", Array(("name", _TEXT), ("partitions", Array(Int32)))))
"""A request that names partitions only."""
_OUTCOMES = ("topics", Array(("name", _TEXT), ("partitions", Array(("partition", Int32), ("error_code", Int16)))))
"""In an answer: what became of each partition."""
_NOBODY = (-1, "")
"""The generation and the member of one who commits from outside the group."""


class Committed(NamedTuple):
    """What a group has for a partition: the offset to read next, -1 for none; the note beside it; the leader epoch of
    the record before it, -1 where nobody knows."""

    offset: int
    note: str = ""
    leader_epoch: int = NO_EPOCH


class _FetchResponse(Response):  # type: ignore[misc]  # the library is not typed
    API_KEY = 9
    API_VERSION = 5
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            Array(
                ("name", _TEXT),
                (
                    "partitions",
                    Array(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", _TEXT),
                        ("error_code", Int16),
                    ),
                ),
            ),
        ),
        ("error_code", Int16),
    )


class _FetchStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 9
    API_VERSION = 5
    RESPONSE_TYPE = _FetchResponse
    SCHEMA = _OF_PARTITIONS


class OffsetFetch(Request[_FetchStruct]):  # type: ignore[misc]
    """Asks for all that a group has committed."""

    API_KEY = 9

    def __init__(self, group: str) -> None:
        self._group = group

    def build(self, request_struct_class: type[_FetchStruct]) -> _FetchStruct:
        """For every partition."""
        return request_struct_class(self._group, None)


def committed(answer: Response) -> dict[TopicPart, Committed]:
    """What an answer to OffsetFetch says, without partitions that have neither an offset nor a note."""
    found = {
        (topic, partition): Committed(offset, note or "", epoch)
        for topic, parts in answer.topics
        for partition, offset, epoch, note, _ in parts
    }
    return {where: one for where, one in found.items() if one.offset >= 0 or one.note}


class _CommitResponse(Response):  # type: ignore[misc]
    API_KEY = 8
    API_VERSION = 6
    SCHEMA = Schema(("throttle_time_ms", Int32), _OUTCOMES)


class _CommitStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 8
    API_VERSION = 6
    RESPONSE_TYPE = _CommitResponse
    SCHEMA = Schema(
        ("group", _TEXT),
        ("generation", Int32),
        ("member", _TEXT),
        (
            "topics",
            Array(
                ("name", _TEXT),
                (
                    "partitions",
                    Array(("partition", Int32), ("offset", Int64), ("leader_epoch", Int32), ("metadata", _TEXT)),
                ),
            ),
        ),
    )


class OffsetCommit(Request[_CommitStruct]):  # type: ignore[misc]
    """Commits from outside: the group must have no members."""

    API_KEY = 8

    def __init__(self, group: str, offsets: Mapping[TopicPart, Committed]) -> None:
        self._group = group
        self._topics: dict[str, list[tuple[int, int, int, str]]] = {}
        for (topic, partition), one in offsets.items():
            self._topics.setdefault(topic, []).append((partition, one.offset, one.leader_epoch, one.note))

    def build(self, request_struct_class: type[_CommitStruct]) -> _CommitStruct:
        """As given."""
        return request_struct_class(self._group, *_NOBODY, list(self._topics.items()))


class _DeleteResponse(Response):  # type: ignore[misc]
    API_KEY = 47
    API_VERSION = 0
    SCHEMA = Schema(("error_code", Int16), ("throttle_time_ms", Int32), _OUTCOMES)


class _DeleteStruct(RequestStruct):  # type: ignore[misc]
    API_KEY = 47
    API_VERSION = 0
    RESPONSE_TYPE = _DeleteResponse
    SCHEMA = _OF_PARTITIONS


class OffsetDelete(Request[_DeleteStruct]):  # type: ignore[misc]
    """Deletes the offsets of these partitions."""

    API_KEY = 47

    def __init__(self, group: str, partitions: Iterable[TopicPart]) -> None:
        self._group = group
        self._topics: dict[str, list[int]] = {}
        for topic, partition in partitions:
            self._topics.setdefault(topic, []).append(partition)

    def build(self, request_struct_class: type[_DeleteStruct]) -> _DeleteStruct:
        """As given."""
        return request_struct_class(self._group, list(self._topics.items()))
