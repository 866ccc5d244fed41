"""The conditions that a task with nothing to copy waits for; its worker checks them in place of a slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from keelman.connect.records import TopicPartition


@dataclass(frozen=True, slots=True)
class FileWatch:
    """Waits until a file has another size than `size` bytes, also less, or another `inode`; both are 0 while there is
    none. Where `modified` is not 0, also until it was modified at another time, in ns since 1970."""

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
    """A change of a vbucket: its number, and the branch of the vbucket's history that it is of."""

    seqno: int
    vbuuid: int


@dataclass(frozen=True, slots=True)
class VbucketWatch:
    """Waits until the last change of a vbucket of Couchbase is another one than that which was read last.

    `properties` say how the cluster and the bucket are reached, by the connectors' keys.
    """

    properties: Mapping[str, str]
    positions: Mapping[int, VbucketPosition]


Watch: TypeAlias = FileWatch | TopicWatch | VbucketWatch
