"""Logs records of the worker's topics that mean nothing to it, so that their writers learn of it."""

from __future__ import annotations

from keelman.kafka.tables.table import Row
from keelman.runtime.logs.logging import get_logger

log = get_logger()
MOST = 1000  # of a topic
MAX_OF_KEY = 200  # characters


class PassedOver:
    """Logs each key of a topic once for each reason, however often it is written."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._logged: set[tuple[bytes, str]] = set()

    def log(self, row: Row, reason: str) -> None:
        """Logs why this record is passed over; nothing where `reason` is empty."""
        if not reason or (row.key, reason) in self._logged or len(self._logged) >= MOST:
            return
        self._logged.add((row.key, reason))
        more = {"note": f"no more than these {MOST} are logged"} if len(self._logged) == MOST else {}
        key = row.key.decode(errors="backslashreplace")[:MAX_OF_KEY]
        where = {"topic": self._topic, "partition": row.partition, "offset": row.offset}
        log.warning("record_passed_over", **where, key=key, why=reason, **more)


def text_of(key: bytes) -> str:
    """Returns a key as text; empty, which is no key of anything, where it is not text."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return ""
