"""Times in Connect's range, any number of ms since the epoch: a datetime in UTC if it can hold the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_EXACT = 4_000_000_000_000
"""Below this many ms a float of seconds is exact to the microsecond."""


@dataclass(frozen=True, slots=True, order=True)
class FarTime:
    """A time before the year 1 or after the year 9999."""

    ms: int


Time: TypeAlias = datetime | FarTime
TIMES = (datetime, FarTime)


def moment(ms: int) -> Time:
    """Returns the time of a number of ms since the epoch."""
    if 0 <= ms < _EXACT:
        return datetime.fromtimestamp(ms / 1000, UTC)
    try:
        return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    except (OverflowError, ValueError, OSError):
        return FarTime(ms)


def ms_of(time: Time) -> int:
    """Returns the ms since the epoch of a time."""
    return (time - EPOCH) // MILLISECOND if isinstance(time, datetime) else time.ms
