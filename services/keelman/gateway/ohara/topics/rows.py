"""Reads the rows that Ohara's connectors write into topics: cells with names and values, and tags. Pure.

A row is a version, the number of cells, each cell behind its length, the number of tags, each tag behind its length. A
cell is a version, its name behind its length, its type, its value behind its length. All numbers are big-endian.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 20
_BYTES, _OBJECT, _ROW, _CELL = 0, 9, 10, 11


class NoRow(ValueError):
    """The bytes are no row, or a row that cannot be shown."""


def row_json(data: bytes) -> dict[str, Any]:
    """Returns a row as JSON: values by cell name, and "tags". Raises NoRow."""
    try:
        return _row(data, 0)
    except (struct.error, UnicodeDecodeError) as error:
        raise NoRow(f"the record's key is no row of Ohara's: {error}") from None


class _Reader:
    """Reads numbers and byte strings from the front of bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> Any:
        (number,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return number

    def stretch(self, form: str) -> bytes:
        """Reads a byte string after its length."""
        length = self.number(form)
        if not 0 <= length <= len(self._data) - self._at:
            raise NoRow(f"the record's key is no row of Ohara's: a length of {length} in {len(self._data)} bytes")
        self._at += length
        return self._data[self._at - length : self._at]

    def version(self) -> None:
        if (version := self.number(">B")) != 0:
            raise NoRow(f"the record's key is no row of Ohara's: version {version} is not known")


def _row(data: bytes, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise NoRow(f"the row is nested deeper than {MAX_DEPTH} levels")
    reader = _Reader(data)
    reader.version()
    cells = dict(_cell(reader.stretch(">i"), depth) for _ in range(reader.number(">i")))
    return cells | {"tags": [reader.stretch(">h").decode() for _ in range(reader.number(">h"))]}


def _cell(data: bytes, depth: int) -> tuple[str, Any]:
    reader = _Reader(data)
    reader.version()
    name, kind, value = reader.stretch(">h").decode(), reader.number(">h"), reader.stretch(">h")
    if kind in _PLAIN:
        return name, _PLAIN[kind](value)
    if kind == _ROW:
        return name, _row(value, depth + 1)
    if kind == _CELL:
        if depth > MAX_DEPTH:
            raise NoRow(f"the row is nested deeper than {MAX_DEPTH} levels")
        inner, inner_value = _cell(value, depth + 1)
        return name, {inner: inner_value}
    if kind == _OBJECT:
        raise NoRow(f"the cell {name!r} has a serialized Java object, which is not read")
    raise NoRow(f"the cell {name!r} is of the type {kind}, which is not known")


def _unpacked(form: str) -> Callable[[bytes], Any]:
    return lambda value: _number(struct.unpack(form, value)[0])


def _number(value: float) -> float | str:
    """Returns a number for JSON: NaN and the infinities become texts."""
    return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]


_PLAIN: dict[int, Callable[[bytes], Any]] = {
    _BYTES: lambda _: "binary data",
    1: lambda value: value != b"\0",
    2: _unpacked(">b"),
    3: _unpacked(">h"),
    4: _unpacked(">i"),
    5: _unpacked(">q"),
    6: _unpacked(">f"),
    7: _unpacked(">d"),
    8: lambda value: value.decode(),
}
