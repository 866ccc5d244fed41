"""Values of logical types as Avro has them, whole numbers and bytes, and back."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

from keelman.connect.converters.logical import (
    DATE,
    DAY,
    DECIMAL,
    EPOCH,
    MILLISECOND,
    TIME,
    TIMESTAMP,
    moment,
    number_of,
)
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import java_class
from keelman.connect.schema import Schema

LOGICAL = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
_DAY_MS = DAY // MILLISECOND
_LAST_DAY = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - EPOCH) // DAY
_FIRST_DAY = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - EPOCH) // DAY
_MOST_SCALE = 1_000_000


def scale_of(schema: Schema) -> int:
    """The scale of a decimal's schema. Raises DataError where it is none."""
    text = dict(schema.parameters).get("scale", "0")
    try:
        scale = int(text)
    except ValueError:
        raise DataError(f"Invalid scale parameter for Decimal: {text}") from None
    if abs(scale) > _MOST_SCALE:
        raise DataError(f"A Decimal of the scale {scale} is beyond what can be written out")
    return scale


def writer(schema: Schema) -> Callable[[Any], Any]:
    """From a logical value to a number or bytes; those themselves are taken, too. Raises DataError."""
    if schema.name == DECIMAL:
        scale = scale_of(schema)
        return lambda value: value if isinstance(value, bytes) else _unscaled(value, scale)
    kind = str(schema.name)
    return lambda value: value if type(value) is int else _number(value, kind)


def reader(schema: Schema) -> Callable[[Any], Any]:
    """From a number or bytes to the logical value. Raises DataError."""
    if schema.name == DECIMAL:
        scale = scale_of(schema)
        return lambda data: _scaled(data, scale)
    if schema.name == DATE:
        return _day
    return moment


def _unscaled(value: Any, scale: int) -> bytes:
    if not isinstance(value, decimal.Decimal) or not value.is_finite():
        raise DataError(f"Invalid type for Decimal, expected BigDecimal but was class {java_class(value)}")
    sign, digits, exponent = value.as_tuple()
    if -int(exponent) != scale:
        text = "Decimal value has mismatching scale for given Decimal schema."
        raise DataError(f"{text} Schema has scale {scale}, value has scale {-int(exponent)}.")
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _scaled(data: bytes, scale: int) -> decimal.Decimal:
    number = int.from_bytes(data, "big", signed=True)
    try:
        return decimal.Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -scale))
    except ValueError:  # more digits than Python makes a text of
        raise DataError(f"A Decimal of {len(data)} bytes is beyond what can be read") from None


def _number(value: Any, kind: str) -> int:
    simple = kind.rpartition(".")[2]
    if not isinstance(value, datetime.datetime):
        raise DataError(f"Invalid type for {simple}, expected Date but was class {java_class(value)}")
    number = number_of(value, kind)
    if kind == DATE and EPOCH + number * DAY != value:
        raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
    if kind == TIME and not 0 <= number <= _DAY_MS:
        raise DataError("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return number


def _day(number: int) -> datetime.datetime:
    if not _FIRST_DAY <= number <= _LAST_DAY:
        raise DataError(f"The day {number} is outside the years 1 to 9999")
    return EPOCH + number * DAY
