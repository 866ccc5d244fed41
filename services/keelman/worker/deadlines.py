"""Keeps the deadline of a REST request: its work is not begun after it, on other workers neither."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar

from keelman.model.errors import DeadlineExceeded

SECONDS = 90.0
HEADER = "x-keelman-seconds"
TIMED_OUT = "Request timed out"
_until: ContextVar[float] = ContextVar("until")


def begin(headers: Mapping[str, str]) -> None:
    """Begins a request: it has Connect's 90 s, or the rest of them when another worker has forwarded it."""
    try:
        seconds_given = float(headers.get(HEADER, SECONDS))
    except ValueError:
        seconds_given = SECONDS
    seconds = seconds_given if 0 <= seconds_given <= SECONDS else SECONDS
    _until.set(time.monotonic() + seconds)


def remaining() -> float:
    """Returns the seconds that this request has left, at least 0. Raises DeadlineExceeded when there are none."""
    left = _until.get(time.monotonic() + SECONDS) - time.monotonic()
    if left <= 0:
        raise DeadlineExceeded(TIMED_OUT)
    return left
