"""Connect's logical types: their names and schemas, and the conversion of their values, decimal.Decimal and datetimes
in UTC, to numbers and bytes."""

from __future__ import annotations

import decimal
from typing import Any

from keelman.connect.errors import DataError
from keelman.connect.java.calendars import DAY_MS
from keelman.connect.java.dates import JavaDateFormat
from keelman.connect.java.numbers import java_class
from keelman.connect.schema import Schema
from keelman.connect.times import Time, moment, ms_of

DECIMAL, DATE, TIME, TIMESTAMP = (
    f"org.apache.kafka.connect.data.{name}" for name in ("Decimal", "Date", "Time", "Timestamp")
)
LOGICAL = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
"""The names of logical types."""
DATE_SCHEMA = Schema("int32", name=DATE, version=1)
TIME_SCHEMA = Schema("int32", name=TIME, version=1)
TIMESTAMP_SCHEMA = Schema("int64", name=TIMESTAMP, version=1)
MAX_SCALE = 1_000_000
MAX_DIGITS = 100_000
"""More take seconds to convert to bytes and back."""
_MAX_BYTES = MAX_DIGITS // 2
_EXACTLY = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def number_of(value: Time, name: str | None) -> int:
    """Returns the number for a time under a schema of this name: days since the epoch for DATE, else ms.

    Raises DataError for a DATE that is not midnight, and for a TIME that is not of the first day."""
    ms = ms_of(value)
    if name == DATE:
        if ms % DAY_MS:
            raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
        return ms // DAY_MS
    if name == TIME and not 0 <= ms <= DAY_MS:
        raise DataError("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return ms


def day(number: int) -> Time:
    """Returns a day by its number since the epoch."""
    return moment(number * DAY_MS)


def time_of_day(number: int) -> Time:
    """Returns a time of the first day by its ms. Raises DataError for ms beyond a day."""
    if not 0 <= number <= DAY_MS:
        raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
    return moment(number)


def scale_of(schema: Schema) -> int:
    """Returns the scale of a decimal's schema. Raises DataError for an invalid scale."""
    text = dict(schema.parameters).get("scale", "0")
    try:
        return _writable(int(text))
    except (TypeError, ValueError):
        raise DataError(f"Invalid scale parameter for Decimal: {text!r:.100}") from None


def decimal_of(data: bytes, scale: int) -> decimal.Decimal:
    """Returns the decimal with these digits, a whole number (two's complement, big-endian). Raises DataError."""
    if len(data) > _MAX_BYTES:
        raise DataError(f"A Decimal of {len(data)} bytes is beyond what can be read")
    if not data:
        raise DataError("A Decimal of no bytes is no number")
    return _EXACTLY.scaleb(decimal.Decimal(int.from_bytes(data, "big", signed=True)), -_writable(scale))


def unscaled(value: decimal.Decimal) -> bytes:
    """Returns the digits of a `finite` decimal: the inverse of `decimal_of`. Raises DataError."""
    number = int(_EXACTLY.scaleb(value, _writable(-int(value.as_tuple().exponent))))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def finite(value: Any) -> decimal.Decimal:
    """Returns the value; raises DataError unless it is a finite decimal of at most MAX_DIGITS digits."""
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        raise DataError(f"Invalid type for Decimal, expected BigDecimal but was class {java_class(value)}")
    if value.adjusted() - int(value.as_tuple().exponent) >= MAX_DIGITS:
        raise DataError(f"A Decimal of more than {MAX_DIGITS} digits is beyond what can be written")
    return value


def scaled(value: Any, scale: int) -> decimal.Decimal:
    """Returns the value; raises DataError unless it is such a decimal of this scale."""
    number = finite(value)
    own = -int(number.as_tuple().exponent)
    if own != scale:
        text = "Decimal value has mismatching scale for given Decimal schema."
        raise DataError(f"{text} Schema has scale {scale}, value has scale {own}.")
    return number


def _writable(scale: int) -> int:
    if abs(scale) > MAX_SCALE:
        raise DataError(f"A Decimal of the scale {scale} is beyond what can be written out")
    return scale


def iso_text(value: Time) -> str:
    """Returns a java.util.Date in Connect's form: a day alone, a time alone up to the first day, or both."""
    ms = ms_of(value)
    form = TIME_FORM if ms < DAY_MS else DATE_FORM if ms % DAY_MS == 0 else TIMESTAMP_FORM
    return form.format(value)


DATE_FORM, TIME_FORM, TIMESTAMP_FORM = map(
    JavaDateFormat, ("yyyy-MM-dd", "HH:mm:ss.SSS'Z'", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
)
