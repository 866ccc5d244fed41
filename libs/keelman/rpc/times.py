"""Converts times between the model (aware UTC datetime, seconds) and the wire (Timestamp, Duration)."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(time: datetime | None) -> Timestamp | None:
    """Converts a datetime to a Timestamp. None stays None: the field is then absent."""
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC))
    return stamp


def from_timestamp(stamp: Timestamp) -> datetime:
    """Converts a Timestamp to an aware UTC datetime."""
    return stamp.ToDatetime(tzinfo=UTC)


def to_duration(seconds: float) -> Duration:
    """Converts seconds to a Duration."""
    duration = Duration()
    duration.FromNanoseconds(int(seconds * 1_000_000_000))
    return duration


def from_duration(duration: Duration) -> float:
    """Converts a Duration to seconds."""
    return duration.ToNanoseconds() / 1_000_000_000
