"""Connect's logical types: their names and schemas, and how their values, decimal.Decimal and datetimes in UTC, stand
for numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from keelman.connect.errors import DataError
from keelman.connect.schema import Schema

DECIMAL, DATE, TIME, TIMESTAMP = (
    f"org.apache.kafka.connect.data.{name}" for name in ("Decimal", "Date", "Time", "Timestamp")
)
DATE_SCHEMA = Schema("int32", name=DATE, version=1)
TIME_SCHEMA = Schema("int32", name=TIME, version=1)
TIMESTAMP_SCHEMA = Schema("int64", name=TIMESTAMP, version=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT = 4_000_000_000_000
"""Below this many ms a float of seconds is right to the microsecond."""
DAY, MILLISECOND = timedelta(days=1), timedelta(milliseconds=1)


def moment(ms: int) -> datetime:
    """A time by its ms since the epoch. Raises DataError beyond the years 1 to 9999."""
    if 0 <= ms < _EXACT:
        return datetime.fromtimestamp(ms / 1000, UTC)
    try:
        return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
    except (OverflowError, ValueError, OSError):
        raise DataError(f"The time {ms} ms is outside the years 1 to 9999") from None


def number_of(value: datetime, name: str | None) -> int:
    """What a time is under a schema of this name: days since the epoch for DATE, else ms."""
    return (value - EPOCH) // (DAY if name == DATE else MILLISECOND)


def iso_text(value: datetime) -> str:
    """A java.util.Date as Connect writes it: a day alone, a time of the first day alone, or both."""
    day, time = value.date(), value.timetz()
    ms = f"{value:%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    if (value - EPOCH) < DAY and value >= EPOCH:
        return ms
    if time.hour == time.minute == time.second == time.microsecond == 0:
        return f"{day:%Y-%m-%d}"
    return f"{day:%Y-%m-%d}T{ms}"
