"""Converts values of logical types to Protobuf's messages for them, and back."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping
from typing import Any

from keelman.connect.converters import logical
from keelman.connect.errors import DataError
from keelman.connect.java.calendars import DAY_MS
from keelman.connect.java.numbers import java_class
from keelman.connect.times import EPOCH, TIMES, FarTime, Time, moment, ms_of


def write_decimal(value: Any) -> dict[str, Any]:
    """Returns the fields of confluent.type.Decimal. Raises DataError."""
    _, digits, exponent = logical.finite(value).as_tuple()
    return {"value": logical.unscaled(value), "precision": len(digits), "scale": -int(exponent)}


def read_decimal(message: Any) -> decimal.Decimal:
    """Returns the decimal of such a message. Raises DataError."""
    return logical.decimal_of(message.value, message.scale)


def write_date(value: Any) -> dict[str, int]:
    """Returns the fields of google.type.Date. Raises DataError."""
    if not isinstance(value, TIMES):
        raise _wrong("Date", value)
    if isinstance(value, FarTime):
        raise DataError(f"google.type.Date holds the years 1 to 9999, not {value.ms} ms since 1970")
    value = value.astimezone(datetime.UTC)
    if value.hour or value.minute or value.second or value.microsecond:
        raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
    return {"year": value.year, "month": value.month, "day": value.day}


def read_date(message: Any) -> datetime.datetime:
    """Returns the date of such a message. Raises DataError for an invalid date."""
    try:
        return datetime.datetime(message.year, message.month, message.day, tzinfo=datetime.UTC)
    except ValueError as error:
        text = f"{message.year}-{message.month}-{message.day}"
        raise DataError(f"google.type.Date holds no date: {text}: {error}") from None


def write_time(value: Any) -> dict[str, int]:
    """Returns the fields of google.type.TimeOfDay. Raises DataError."""
    if not isinstance(value, TIMES):
        raise _wrong("Time", value)
    ms = ms_of(value)
    if not 0 <= ms < DAY_MS:
        raise DataError(f"A Time is less than a day after 1970-01-01T00:00Z, {ms} ms is not")
    seconds, ms = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    return {"hours": minutes // 60, "minutes": minutes % 60, "seconds": seconds, "nanos": ms * 1_000_000}


def read_time(message: Any) -> datetime.datetime:
    """Returns the time of such a message. Raises DataError for an invalid time."""
    try:
        time = datetime.time(message.hours, message.minutes, message.seconds, message.nanos // 1_000_000 * 1000)
    except ValueError as error:
        text = f"{message.hours}:{message.minutes}:{message.seconds} and {message.nanos} ns"
        raise DataError(f"google.type.TimeOfDay holds no time: {text}: {error}") from None
    return datetime.datetime.combine(EPOCH.date(), time, datetime.UTC)


def write_timestamp(value: Any) -> dict[str, int]:
    """Returns the fields of google.protobuf.Timestamp. Raises DataError."""
    if not isinstance(value, TIMES):
        raise _wrong("Timestamp", value)
    seconds, ms = divmod(ms_of(value), 1000)
    return {"seconds": seconds, "nanos": ms * 1_000_000}


def read_timestamp(message: Any) -> Time:
    """Returns the time of such a message, without fractions of a millisecond. Raises DataError."""
    return moment(message.seconds * 1000 + message.nanos // 1_000_000)


WRITERS: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    logical.DECIMAL: write_decimal,
    logical.DATE: write_date,
    logical.TIME: write_time,
    logical.TIMESTAMP: write_timestamp,
}
READERS: Mapping[str, Callable[[Any], Any]] = {
    logical.DECIMAL: read_decimal,
    logical.DATE: read_date,
    logical.TIME: read_time,
    logical.TIMESTAMP: read_timestamp,
}


def _wrong(kind: str, value: Any) -> DataError:
    return DataError(f"Invalid type for {kind}: {java_class(value)}")
