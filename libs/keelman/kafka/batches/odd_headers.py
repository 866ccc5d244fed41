"""Reads record batches whose headers have names that are not UTF-8, which the library refuses.

Kafka's brokers take any bytes for a header's name. Java's consumer shows invalid UTF-8 in it as U+FFFD, and so does
this module; a batch that is passed on whole keeps its bytes.
"""

from __future__ import annotations

from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.util import decode_varint


class OddHeadersBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    """A batch of magic 2, some twenty times slower than the library's own; its checksum is not checked."""

    def _read_msg(self) -> Any:
        """Reads one record. https://kafka.apache.org/documentation/#record"""
        data, begins = self._buffer, int(self._pos)  # type: ignore[has-type]
        length, at = decode_varint(data, begins)
        end = at + length
        later, at = decode_varint(data, at + 1)  # after the attributes, which are unused
        delta, at = decode_varint(data, at)
        key, at = _bytes(data, at)
        value, at = _bytes(data, at)
        count, at = decode_varint(data, at)
        headers = []
        for _ in range(count):
            name, at = _bytes(data, at)
            content, at = _bytes(data, at)
            headers.append(((name or b"").decode(errors="replace"), content))
        if at != end:
            raise CorruptRecordException(f"a record of {length} bytes ends {at - end} bytes behind them")
        self._pos = at
        appended = self.timestamp_type == self.LOG_APPEND_TIME
        time = self.max_timestamp if appended else self.first_timestamp + later
        return _DefaultRecordPy(self.base_offset + delta, time, self.timestamp_type, key, value, headers)


def _bytes(data: bytearray, at: int) -> tuple[bytes | None, int]:
    """Reads bytes after their length, which is -1 for none."""
    length, at = decode_varint(data, at)
    return (None, at) if length < 0 else (bytes(data[at : at + length]), at + length)
