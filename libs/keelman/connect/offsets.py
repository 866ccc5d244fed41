"""Source offsets in the form of the offset topic: exact bytes both ways, and a table of one connector's offsets.

Key `["connector",{partition}]`, value `{offset}` or a tombstone. Compaction and lookup go by key bytes and partition,
so bytes that are in the topic are reused unchanged, and new ones are written exactly as Jackson writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from keelman.connect.errors import DataError
from keelman.connect.java.text import hash_order, json_string, json_text
from keelman.connect.records import Offset, Partition, RawOffset

AlteredOffsets: TypeAlias = Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]
"""Partitions with the offsets that a user sets; an offset of None deletes."""
_IDENTITY = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))
_NO_PARTITION = "raw "
_PRIMITIVES = (str, int, float, bool, type(None))


def key_bytes(connector: str, partition: Partition) -> bytes:
    """Returns the key of a new partition. Raises DataError unless its keys are strings and its values primitive."""
    return f"[{json_text(connector)},{_flat(partition)}]".encode()


def value_bytes(offset: Offset | None) -> bytes | None:
    """Returns the value of an offset; None is the tombstone that deletes it. Raises DataError as `key_bytes` does."""
    return None if offset is None else _flat(offset).encode()


def parse_key(raw: bytes) -> tuple[str, dict[str, Any]] | None:
    """Returns connector and partition of a key; None for another key (Connect skips such records)."""
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    match parsed:
        case [str(connector), dict(partition)]:
            return connector, partition
    return None


def parse_value(raw: bytes | None) -> dict[str, Any] | None:
    """Returns the offset of a record's value; None for a tombstone, an empty value, JSON null or any non-object."""
    if not raw:
        return None
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def identity(partition: Partition) -> str:
    """Returns the same text for equal partitions, in any order of fields; 1, 1.0, "1" and true stay distinct."""
    return _IDENTITY.encode(dict(partition))


def in_json(tree: Mapping[str, Any]) -> str:
    """Returns a partition or an offset in the form for people and headers. A value that a connector may put there, but
    may not commit, is shown as a text."""
    return json.dumps(dict(tree), separators=(",", ":"), ensure_ascii=False, default=str)


class CommittedOffsets:
    """One connector's committed offsets, and the key bytes to write them with."""

    def __init__(self, connector: str, records: Iterable[tuple[bytes, bytes | None]] = ()) -> None:
        """`records` are raw keys and values of the offset topic, oldest first; a later one wins."""
        self.connector = connector
        self._keys: dict[str, bytes] = {}
        self._offsets: dict[str, dict[str, Any] | None] = {}
        self._values: dict[str, bytes | None] = {}
        for key, value in records:
            parsed = parse_key(key)
            if parsed is not None and parsed[0] == connector:
                name = identity(parsed[1])
                self._keys[name] = key
                self._offsets[name] = parse_value(value)
                self._values[name] = value

    def __iter__(self) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
        """Yields every partition with its offset."""
        for name, offset in self._offsets.items():
            if not name.startswith(_NO_PARTITION):
                yield json.loads(name), offset

    def offset(self, partition: Partition) -> dict[str, Any] | None:
        """Returns the committed offset of a partition, None when there is none."""
        return self._offsets.get(identity(partition))

    def record(
        self, partition: Partition, offset: Offset | None, name: str | None = None
    ) -> tuple[bytes, bytes | None]:
        """Returns key and value bytes that commit an offset; the topic's own key bytes if it has the partition. `name`
        is the partition's identity, if known."""
        name = name or identity(partition)
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = key_bytes(self.connector, partition)
        return key, value_bytes(offset)

    def note(self, partition: Partition, offset: Offset | None) -> None:
        """Remembers an offset once it is committed."""
        name = identity(partition)
        self._offsets[name] = None if offset is None else dict(offset)
        self._values.pop(name, None)

    def stored(self, partition: Partition) -> RawOffset | tuple[Partition, Offset] | None:
        """Returns the committed offset of a partition, in the topic's own bytes if known; None without an offset."""
        name = identity(partition)
        offset, value = self._offsets.get(name), self._values.get(name)
        if offset is None:
            return None
        return (partition, offset) if value is None else RawOffset(self._keys[name], value)

    def raw_value(self, key: bytes) -> bytes | None:
        """Returns the committed value for a key of the offset topic, unchanged; None when there is none."""
        name = self.raw_identity(key)
        if name in self._values:
            return self._values[name]
        return value_bytes(self._offsets.get(name))

    def raw_record(self, raw: RawOffset) -> tuple[bytes, bytes | None]:
        """Returns key and value that commit an offset; the topic's own key if it has the partition."""
        return self._keys.setdefault(self.raw_identity(raw.key), raw.key), raw.value

    def note_raw(self, raw: RawOffset) -> None:
        """Remembers an offset once it is committed."""
        name = self.raw_identity(raw.key)
        self._offsets[name] = parse_value(raw.value)
        self._values[name] = raw.value

    def raw_identity(self, key: bytes) -> str:
        """Returns the `identity` of a key of the offset topic; another text if it is not of this connector."""
        parsed = parse_key(key)
        if parsed is None or parsed[0] != self.connector:
            return f"{_NO_PARTITION}{key!r}"
        return identity(parsed[1])


def _flat(mapping: Mapping[str, Any]) -> str:
    for name, value in mapping.items():
        if not isinstance(name, str) or not isinstance(value, _PRIMITIVES):
            raise DataError(f"offsets may only contain string keys and primitive values, not {name!r}: {value!r}")
    return "{" + ",".join([begin + json_text(mapping[name]) for name, begin in _fields(tuple(mapping))]) + "}"


@lru_cache(maxsize=1024)  # the offsets of a connector have the same few names
def _fields(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Returns the names in Java's order, each with its beginning in JSON."""
    return [(name, f"{json_string(name)}:") for name in hash_order(names)]
