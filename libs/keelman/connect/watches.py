"""The conditions that a task with nothing to copy waits for; its worker checks them in place of a slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from keelman.connect.records import TopicPartition


@dataclass(frozen=True, slots=True)
class FileWatch:
    """Waits until a file has another size than `size` bytes, also less, or another `inode`; both are 0 while there is
    none."""

    path: str
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class TopicWatch:
    """Waits until a partition ends beyond its position, the next offset to read.

    `properties` are those of the cluster's clients, named as in Java.
    """

    properties: Mapping[str, str]
    positions: Mapping[TopicPartition, int]


Watch: TypeAlias = FileWatch | TopicWatch
