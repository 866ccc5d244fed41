"""Reads and writes a Java-serialised `HashMap<byte[], byte[]>`, in which Connect's standalone worker keeps its offsets.

Source of the layout: the Java Object Serialization Specification, section 6.4 (grammar of the stream), and HashMap's
`writeObject`, as a real standalone worker of Kafka 4.3 writes it (tests/recorded/data/java_map.json). Only this type is
read: no class is looked up and none of the file's is trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TypeAlias

from keelman.connect.errors import DataError

Entry: TypeAlias = bytes | None

MAGIC = b"\xac\xed\x00\x05"
NULL, REFERENCE, CLASS, OBJECT, ARRAY, BLOCK, END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
FIRST_HANDLE = 0x7E0000
LOAD_FACTOR = 0.75
SMALLEST_CAPACITY = 16

HASH_MAP = (
    bytes([CLASS])
    + struct.pack(">H", 17)
    + b"java.util.HashMap"
    + bytes.fromhex("0507dac1c31660d1")  # serialVersionUID
    + b"\x03\x00\x02"  # it writes more than its fields; two of them
    + b"F\x00\x0aloadFactorI\x00\x09threshold"
    + bytes([END, NULL])
)
BYTE_ARRAY = bytes([CLASS]) + b"\x00\x02[B" + bytes.fromhex("acf317f8060854e0") + b"\x02\x00\x00" + bytes([END, NULL])
# Handles are numbered in the order of the stream: the map's class, the map, the arrays' class, then each array.
ARRAY_CLASS = FIRST_HANDLE + 2


def dump_map(entries: Mapping[bytes, Entry]) -> bytes:
    """Returns Java's bytes for these entries, in their order (Java's own is arbitrary)."""
    capacity = SMALLEST_CAPACITY
    while len(entries) > capacity * LOAD_FACTOR:
        capacity *= 2
    threshold = int(capacity * LOAD_FACTOR) if entries else 0
    parts = [
        MAGIC + bytes([OBJECT]) + HASH_MAP,
        struct.pack(">fi", LOAD_FACTOR, threshold),
        bytes([BLOCK, 8]) + struct.pack(">ii", capacity, len(entries)),
    ]
    described = False
    for pair in entries.items():
        for data in pair:
            if data is None:
                parts.append(bytes([NULL]))
                continue
            kind = struct.pack(">BI", REFERENCE, ARRAY_CLASS) if described else BYTE_ARRAY
            parts.append(bytes([ARRAY]) + kind + struct.pack(">i", len(data)) + data)
            described = True
    return b"".join([*parts, bytes([END])])


def load_map(data: bytes) -> dict[bytes, Entry]:
    """Returns the entries. Raises DataError for anything but such a map, also for one that is cut short.

    An empty file is an empty map, as in Connect. A null key is ignored: no offset can have it.
    """
    if not data:
        return {}
    stream = _Stream(data)
    try:
        stream.expect(MAGIC + bytes([OBJECT]), "a serialised object")
        stream.expect(HASH_MAP, "a java.util.HashMap")
        stream.take(8)  # load factor and threshold: Java computes its own when it reads
        stream.expect(bytes([BLOCK, 8]), "a map's size")
        _, count = struct.unpack(">ii", stream.take(8))
        if count < 0:
            raise DataError(f"it says that it has {count} entries")
        arrays: dict[int, bytes] = {}
        mapping = {}
        for _ in range(count):
            key, value = stream.array(arrays), stream.array(arrays)
            if key is not None:
                mapping[key] = value
        stream.expect(bytes([END]), "the map's end")
    except DataError as error:
        raise DataError(f"not a Java-serialised HashMap of byte arrays: {error}") from None
    return mapping


class _Stream:
    """The unread bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._class = 0
        self._next = FIRST_HANDLE + 2

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if size < 0 or len(taken) < size:
            raise DataError(f"it ends at byte {len(self._data)}")
        self._at += size
        return taken

    def expect(self, expected: bytes, what: str) -> None:
        at = self._at
        if self._data[at : at + len(expected)] != expected:
            if expected.startswith(self._data[at:]):
                raise DataError(f"it ends at byte {len(self._data)}")
            raise DataError(f"byte {at} does not begin {what}")
        self._at += len(expected)

    def array(self, arrays: dict[int, bytes]) -> Entry:
        """Reads a byte array, a reference to an earlier one, or null."""
        at, (kind,) = self._at, self.take(1)
        if kind == NULL:
            return None
        if kind == REFERENCE:
            (handle,) = struct.unpack(">I", self.take(4))
            if handle not in arrays:
                raise DataError(f"byte {at} names an array that is not there")
            return arrays[handle]
        if kind != ARRAY:
            raise DataError(f"byte {at} does not begin a byte array")
        self._array_class()
        handle, self._next = self._next, self._next + 1
        (size,) = struct.unpack(">i", self.take(4))
        arrays[handle] = self.take(size)
        return arrays[handle]

    def _array_class(self) -> None:
        if not self._class:
            self.expect(BYTE_ARRAY, "the class of byte arrays")
            self._class, self._next = self._next, self._next + 1
        else:
            self.expect(struct.pack(">BI", REFERENCE, self._class), "a byte array")
