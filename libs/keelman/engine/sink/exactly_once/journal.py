"""Keeps the side journal of an exactly-once file: pairs of the file's length and the offsets that it holds.

One small JSON file beside the data, replaced whole: written to a temporary name, made durable, renamed. At any moment,
also after a power cut, it is an old or a new journal, never half of one.

The data is made durable first and the journal after it, so the journal never refers to missing bytes. After the JSON
comes a line for each write since that commit, appended before the write itself: its announcement. Bytes beyond the
journaled length are the sink's own torn tail if announcements name them, and another writer's if not.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from keelman.connect.errors import ConnectError
from keelman.connect.plugin import KeptOffset
from keelman.connect.policy.folders import open_file, opener
from keelman.connect.records import TopicPartition
from keelman.connect.tasks.kept_offsets import SinkReader
from keelman.engine.sink.exactly_once.announcements import Announcement, parse_announcements
from keelman.runtime.home import sync_folder

VERSION = 1

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Entry:
    """The content of the journal: the file's length and inode, offsets by `owner_of`, the last bytes before the length
    as a digest, empty where they are not known, and the file's modification time, in ns since 1970. `shown` has the
    offsets of the last owner's group when it took over. A journal that is not `clean` is of a version that announced no
    writes, and was not closed properly."""

    length: int = 0
    clean: bool = True
    inode: int = 0
    offsets: Mapping[str, Mapping[TopicPartition, KeptOffset]] = field(default_factory=dict)
    mark: str = ""
    modified: int = 0
    announced: Sequence[Announcement] = ()
    shown: Mapping[str, Mapping[TopicPartition, int | None]] = field(default_factory=dict)


def owner_of(connector: str, reader: SinkReader) -> str:
    """Returns the key of an offset owner: connector, worker cluster, group and cluster. Older journals have the
    connector's name alone."""
    return json.dumps([connector, *reader], separators=(",", ":"))


def journal_path(data: Path) -> Path:
    """Returns the path of a file's journal: a hidden file beside it."""
    return data.with_name(f".{data.name}.keelman-journal")


class Journal:
    """The journal of one data file. One writer at a time: the caller holds the data file's lock."""

    def __init__(self, data: Path) -> None:
        self.path = journal_path(data)
        self._temporary = self.path.with_name(self.path.name + ".new")
        self._descriptor: int | None = None
        self._announces = False

    def load(self) -> Entry | None:
        """Reads the journal. Returns None without one. Raises ConnectError when it is damaged or may not be read."""
        try:
            with open(self.path, "rb", opener=opener) as file:
                raw = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConnectError(f"{self.path}: the journal cannot be read: {error.strerror}") from error
        try:
            return decode(raw)
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectError(
                f"{self.path}: the journal is damaged ({error}); remove it to continue from the group's offsets, "
                "which can repeat records"
            ) from error

    def save(self, entry: Entry) -> None:
        """Replaces the journal, with all announcements; durable when it returns. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        descriptor = open_file(self._temporary, flags, 0o666)
        try:
            _write_whole(descriptor, encode(entry))
            os.fsync(descriptor)
            os.rename(self._temporary, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        self.close()
        self._descriptor = descriptor
        sync_folder(self.path.parent)

    def announce(self, write: Announcement) -> None:
        """Appends the announcement of a write; it survives the process at once, a power cut only after `sync`.

        Raises OSError."""
        if self._descriptor is None:
            self._descriptor = open_file(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        _write_whole(self._descriptor, write.line())
        self._announces = True

    def sync(self) -> None:
        """Makes the announcements durable. Raises OSError."""
        if self._announces and self._descriptor is not None:
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Closes the journal; announcements stay in it."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
        self._descriptor, self._announces = None, False


def _write_whole(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def json_of(kept_offset: KeptOffset) -> dict[str, Any]:
    """Returns a kept offset as JSON."""
    fields: dict[str, Any] = {"offset": kept_offset.offset, "mirrored": list(kept_offset.mirrored)}
    if kept_offset.topic_id:
        fields["topic_id"] = kept_offset.topic_id
    if kept_offset.leader_epoch >= 0:
        fields["leader_epoch"] = kept_offset.leader_epoch
    return fields


def kept_of(tree: Mapping[str, Any]) -> KeptOffset:
    """Returns the kept offset of a JSON object. Raises KeyError or TypeError for any other object."""
    return KeptOffset(tree["offset"], tuple(tree["mirrored"]), tree.get("topic_id", ""), tree.get("leader_epoch", -1))


def encode(entry: Entry) -> bytes:
    """Returns the journal's bytes: a checksum line, then JSON."""
    tree = {
        "version": VERSION,
        "length": entry.length,
        "clean": entry.clean,
        "inode": entry.inode,
        "mark": entry.mark,
        "modified": entry.modified,
        "connectors": {owner: _by_topic(offsets, json_of) for owner, offsets in entry.offsets.items()},
        "shown": {owner: _by_topic(shown, lambda offset: offset) for owner, shown in entry.shown.items()},
    }
    body = json.dumps(tree, separators=(",", ":")).encode()
    return b"%08x\n%s\n" % (zlib.crc32(body), body) + b"".join(announcement.line() for announcement in entry.announced)


def decode(raw: bytes) -> Entry:
    """Returns the entry of a journal's bytes. Raises ValueError, KeyError or TypeError when they are not whole."""
    head, _, rest = raw.partition(b"\n")
    body, _, announced = rest.partition(b"\n")
    if int(head, 16) != zlib.crc32(body):
        raise ValueError("checksum does not match")
    tree = json.loads(body)
    if tree["version"] != VERSION:
        raise ValueError(f"version {tree['version']} is not known, only {VERSION}")
    offsets = {owner: _by_partition(topics, kept_of) for owner, topics in tree["connectors"].items()}
    shown = {owner: _by_partition(topics, lambda offset: offset) for owner, topics in tree.get("shown", {}).items()}
    mark, modified, writes = tree.get("mark", ""), tree.get("modified", 0), parse_announcements(announced)
    return Entry(tree["length"], tree["clean"], tree["inode"], offsets, mark, modified, writes, shown)


def _by_topic(values: Mapping[TopicPartition, V], encode_value: Callable[[V], Any]) -> dict[str, dict[str, Any]]:
    topics: dict[str, dict[str, Any]] = {}
    for (topic, partition), value in values.items():
        topics.setdefault(topic, {})[str(partition)] = encode_value(value)
    return topics


def _by_partition(topics: Mapping[str, Mapping[str, Any]], decode_value: Callable[[Any], V]) -> dict[TopicPartition, V]:
    return {
        TopicPartition(topic, int(partition)): decode_value(value)
        for topic, partitions in topics.items()
        for partition, value in partitions.items()
    }
