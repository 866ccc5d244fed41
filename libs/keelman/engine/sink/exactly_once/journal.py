"""Keeps the side journal of an exactly-once file: how long the file was when which offsets were in it.

One small JSON file beside the data, replaced whole: written to a temporary name, made durable, renamed. At two commits
a second that costs three fsyncs each, and at any moment, also after a power cut, it is an old or a new journal, never
half of one.

The data is made durable first and the journal after it, so the journal never speaks of bytes that are not there. What
the file holds beyond the journaled length was written by a commit that never came about; it is cut off at the start.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import KeptOffset
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.kept_offsets import SinkReader
from keelman.runtime.home import sync_folder

VERSION = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of the journal: the file's length, whether its writer ended in order, and offsets by `owner_of`."""

    length: int = 0
    clean: bool = True
    inode: int = 0
    offsets: Mapping[str, Mapping[TopicPartition, KeptOffset]] = field(default_factory=dict)


def owner_of(connector: str, reader: SinkReader) -> str:
    """Whose offsets they are: a connector's of a worker cluster, group and cluster. In older journals the connector's
    name stands alone."""
    return json.dumps([connector, *reader], separators=(",", ":"))


def journal_path(data: Path) -> Path:
    """Where the journal of a file is: hidden, beside it."""
    return data.with_name(f".{data.name}.keelman-journal")


class Journal:
    """The journal of one data file. One writer at a time: the caller holds the data file's lock."""

    def __init__(self, data: Path) -> None:
        self.path = journal_path(data)
        self._temporary = self.path.with_name(self.path.name + ".new")

    def load(self) -> Entry | None:
        """What the journal says, None when there is none. Raises ConnectError when it is damaged."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return decode(raw)
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(
                f"{self.path}: the journal is damaged ({error}); remove it to go on from the group's offsets, "
                f"which can repeat records"
            ) from error

    def save(self, entry: Entry) -> None:
        """Replaces the journal; durable when it returns. Raises OSError."""
        with open(self._temporary, "wb") as file:
            file.write(encode(entry))
            file.flush()
            os.fsync(file.fileno())
        os.rename(self._temporary, self.path)
        sync_folder(self.path.parent)


def json_of(kept: KeptOffset) -> dict[str, Any]:
    """A kept offset as it stands in JSON."""
    made: dict[str, Any] = {"offset": kept.offset, "mirrored": list(kept.mirrored)}
    if kept.topic_id:
        made["topic_id"] = kept.topic_id
    if kept.leader_epoch >= 0:
        made["leader_epoch"] = kept.leader_epoch
    return made


def kept_of(tree: Mapping[str, Any]) -> KeptOffset:
    """The kept offset that stands in JSON. Raises KeyError or TypeError for what is none."""
    return KeptOffset(tree["offset"], tuple(tree["mirrored"]), tree.get("topic_id", ""), tree.get("leader_epoch", -1))


def encode(entry: Entry) -> bytes:
    """The journal's bytes: a checksum line, then JSON."""
    offsets: dict[str, dict[str, dict[str, Any]]] = {}
    for connector, partitions in entry.offsets.items():
        topics = offsets.setdefault(connector, {})
        for (topic, partition), kept in partitions.items():
            topics.setdefault(topic, {})[str(partition)] = json_of(kept)
    tree = {
        "version": VERSION,
        "length": entry.length,
        "clean": entry.clean,
        "inode": entry.inode,
        "connectors": offsets,
    }
    body = json.dumps(tree, separators=(",", ":")).encode()
    return b"%08x\n%s\n" % (zlib.crc32(body), body)


def decode(raw: bytes) -> Entry:
    """The entry of a journal's bytes. Raises ValueError, KeyError or TypeError when they are not whole."""
    head, _, rest = raw.partition(b"\n")
    body = rest.removesuffix(b"\n")
    if int(head, 16) != zlib.crc32(body):
        raise ValueError("checksum does not match")
    tree = json.loads(body)
    if tree["version"] != VERSION:
        raise ValueError(f"version {tree['version']} is not known, only {VERSION}")
    offsets = {
        connector: {
            TopicPartition(topic, int(partition)): kept_of(kept)
            for topic, partitions in topics.items()
            for partition, kept in partitions.items()
        }
        for connector, topics in tree["connectors"].items()
    }
    return Entry(tree["length"], tree["clean"], tree["inode"], offsets)
