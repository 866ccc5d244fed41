"""Times as the tables have them: whole microseconds since 1970 UTC. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(time: datetime) -> int:
    """Returns a time as the tables keep it."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def moment(value: int) -> datetime:
    """Returns a time of the tables as an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=value)
