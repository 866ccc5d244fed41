"""Packs records of a batch that have only values: no keys, no headers, one time for all.

Such records differ in their values, lengths and numbers only, so the bytes between the values come from tables, and one
call joins them all: half the time of a call for each record.

Source: https://kafka.apache.org/documentation/#record
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from keelman.kafka.wire.fields import varint

_KEPT_LENGTHS = 1 << 12
_KEPT_NUMBERS = 1 << 16
_END = b"\0"
"""The end of a record: it has no headers."""
_LEVELS = (1 << 6, 1 << 13, 1 << 20)
"""A number below the first of these takes one byte, below the second two, and so on."""


def plain_records(values: Sequence[bytes | None], room: int, most_bytes: int) -> bytearray | None:
    """Returns the records in order, after `room` free bytes; None if together they exceed `most_bytes`, are too
    many, or one of them is null."""
    number = len(values)
    if not 0 < number <= _KEPT_NUMBERS:
        return None
    try:
        sizes = list(map(len, values))  # type: ignore[arg-type]
    except TypeError:
        return None
    same = sizes.count(sizes[0]) == number
    if (sizes[0] * number if same else sum(sizes)) > most_bytes:  # before joining all of it in vain
        return None
    while len(_NUMBERS) < number:
        _NUMBERS.append(b"\0\0" + _varint(len(_NUMBERS)) + b"\1")  # attributes, time, offset; no key
    pieces: list[bytes] = [b""] * (4 * number)
    pieces[0::4] = chain.from_iterable(
        _each(table, sizes[begin:end], same=same)
        for table, begin, end in zip(_WHOLE, (0, *_LEVELS), _LEVELS, strict=False)
    )
    pieces[1::4] = _NUMBERS[:number]
    pieces[2::4] = _each(_VALUE, sizes, same=same)
    pieces[3::4] = values  # type: ignore[assignment]
    pieces[0] = bytes(room) + pieces[0][len(_END) :]
    pieces.append(_END)
    encoded = bytearray().join(pieces)
    return encoded if len(encoded) <= most_bytes else None


def _varint(value: int) -> bytes:
    """Encodes a number from 0 on, in zigzag form."""
    return varint(value << 1)


class _BySize(dict[int, bytes]):
    """The bytes before values of each length, created once; those for long values are not stored."""

    def __init__(self, encode: Callable[[int], bytes]) -> None:
        super().__init__()
        self._made = encode

    def __missing__(self, size: int) -> bytes:
        encoded = self._made(size)
        if size < _KEPT_LENGTHS:
            self[size] = encoded
        return encoded


def _each(table: _BySize, sizes: list[int], *, same: bool) -> Iterable[bytes]:
    if same:
        return [table[sizes[0]]] * len(sizes) if sizes else ()
    return map(table.__getitem__, sizes)


def _whole(number_bytes: int) -> _BySize:
    """Returns the end of the previous record and the length of a record whose number takes so many bytes."""
    return _BySize(lambda size: _END + _varint(4 + number_bytes + len(_varint(size)) + size))


_WHOLE = [_whole(number_bytes) for number_bytes in (1, 2, 3)]
_VALUE = _BySize(_varint)
_NUMBERS: list[bytes] = []
