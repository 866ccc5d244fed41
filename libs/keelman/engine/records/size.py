"""Computes a record's size as Java's producer does, and whether its target accepts that size.

Source: AbstractRecords.estimateSizeInBytesUpperBound; https://kafka.apache.org/documentation/#record
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.bad_records.tolerance import RecordTooLarge
from keelman.connect.records import Headers
from keelman.kafka.batches.record_batch import HEADER_BYTES, encode

OVERHEAD_BYTES = 21
"""Length, attributes, timestamp and offset delta of a record at their longest."""
_LENGTHS_BYTES = 15
NO_LIMIT = 1 << 62
AGAIN_SECONDS = 5.0


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """Returns the most bytes of a batch of this record alone, before compression."""
    own = headers or ()
    return HEADER_BYTES + OVERHEAD_BYTES + _sized(key) + _sized(value) + _varint(len(own)) + _headers_bytes(own)


def may_be_over(
    values: Sequence[bytes | None], keys: Sequence[bytes | None] | None, headers: Sequence[Headers] | None, most: int
) -> bool:
    """Returns whether a record may have more than `most` bytes: a quick check by the longest key, value and headers."""
    if most >= NO_LIMIT or not values:
        return False
    longest = _longest(values) + (0 if keys is None else _longest(keys))
    if headers is not None:
        longest += max(map(_headers_bytes, headers), default=0)
    return longest + HEADER_BYTES + OVERHEAD_BYTES + _LENGTHS_BYTES > most


@dataclass(slots=True)
class Sizes:
    """The limits of one record's size: `request` by its producer's max.request.size, before compression; `topic` by the
    topic's max.message.bytes as far as that is known, after compression with `codec`.

    The topic's limit may be raised: `ask` is called again before a record counts as too large, at most every 5 s.
    """

    request: int
    topic: int = NO_LIMIT
    codec: int = 0
    ask: Callable[[], int] | None = None
    asked: float = field(default_factory=time.monotonic)

    @property
    def least(self) -> int:
        """The bytes up to which a record is accepted in any case."""
        return min(self.request, self.topic)

    def room(self, size: int) -> bool:
        """Returns whether a record of so many bytes is accepted even without compression."""
        return size <= self.least or (size <= self.request and size <= self._again())

    def fault(self, key: bytes | None, value: bytes | None, headers: Headers | None) -> RecordTooLarge | None:
        """Returns the error for a record that is too large, in the words of Java's producer; else None."""
        size = record_bytes(key, value, headers)
        if size <= self.least:
            return None
        if size > self.request:
            return RecordTooLarge(size, too_large(size, self.request))
        size = len(encode([value], [key], None, [headers], now_ms=int(time.time() * 1000), codec=self.codec))
        if size <= self.topic or size <= self._again():
            return None
        text = "The request included a message larger than the max message size the server will accept."
        return RecordTooLarge(size, f"{text} It takes {size} bytes, max.message.bytes of the topic is {self.topic}.")

    def _again(self) -> int:
        if self.ask is not None and time.monotonic() - self.asked >= AGAIN_SECONDS:
            limit = self.ask()
            self.asked = time.monotonic()
            if limit != NO_LIMIT:
                self.topic = limit
        return self.topic


_NO_LIMITS = Sizes(NO_LIMIT)


def any_size(_topic: str) -> Sizes:
    """Returns no limit, whatever the topic: for conversions outside a run."""
    return _NO_LIMITS


def too_large(size: int, most: int) -> str:
    """Returns the message of Java's producer for a record that it refuses."""
    return (
        f"The message is {size} bytes when serialized which is larger than {most}, which is the value of the "
        "max.request.size configuration."
    )


def _longest(column: Sequence[bytes | None]) -> int:
    try:
        return max(map(len, column))  # type: ignore[arg-type]  # nulls are rare: looked at the slow way when they come
    except TypeError:
        return max((len(item) for item in column if item is not None), default=0)


def _headers_bytes(headers: Any) -> int:
    return sum(_varint(size := len(name.encode())) + size + _sized(value) for name, value in headers or ())


def _sized(field: bytes | None) -> int:
    return 1 if field is None else _varint(len(field)) + len(field)


def _varint(number: int) -> int:
    """Returns the bytes of a length as a varint: 7 bits a byte, one bit in all for the sign."""
    return max(1, ((number << 1).bit_length() + 6) // 7)
