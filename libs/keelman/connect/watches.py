"""The conditions that a task with nothing to copy waits for; its worker checks them in place of a slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from keelman.connect.records import TopicPartition


@dataclass(frozen=True, slots=True)
class FileWatch:
    """Waits until a file's size differs from `size` bytes, also if it is smaller, or its inode from `inode`; both are 0
    while there is no file. If `modified` is not 0, also until its time of modification differs, in ns since 1970."""

    path: str
    size: int
    inode: int
    modified: int = 0


@dataclass(frozen=True, slots=True)
class TopicWatch:
    """Waits until a partition ends beyond its position, the next offset to read.

    `properties` are those of the cluster's clients, named as in Java; `ids` are the topics', as far as they are known.
    """

    properties: Mapping[str, str]
    positions: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)


class VbucketPosition(NamedTuple):
    """A change of a vbucket: its number, and its branch of the vbucket's history."""

    seqno: int
    vbuuid: int


@dataclass(frozen=True, slots=True)
class VbucketWatch:
    """Waits until the last change of a Couchbase vbucket differs from the last one read.

    `properties` are the connectors' keys for access to the cluster and the bucket.
    """

    properties: Mapping[str, str]
    positions: Mapping[int, VbucketPosition]


Watch: TypeAlias = FileWatch | TopicWatch | VbucketWatch
