"""Converts values of logical types to Avro's numbers and bytes, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keelman.connect.converters import logical
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import java_class
from keelman.connect.schema import Schema
from keelman.connect.times import TIMES, moment


def writer(schema: Schema) -> Callable[[Any], Any]:
    """Returns a function from a logical value to a number or bytes, which it also accepts. Raises DataError."""
    if schema.name == logical.DECIMAL:
        scale = logical.scale_of(schema)
        return lambda value: value if isinstance(value, bytes) else logical.unscaled(logical.scaled(value, scale))
    kind = str(schema.name)
    return lambda value: value if type(value) is int else _number(value, kind)


def reader(schema: Schema) -> Callable[[Any], Any]:
    """Returns a function from a number or bytes to the logical value. Raises DataError."""
    if schema.name == logical.DECIMAL:
        scale = logical.scale_of(schema)
        return lambda data: logical.decimal_of(data, scale)
    if schema.name == logical.DATE:
        return logical.day
    return logical.time_of_day if schema.name == logical.TIME else moment


def _number(value: Any, kind: str) -> int:
    simple = kind.rpartition(".")[2]
    if not isinstance(value, TIMES):
        raise DataError(f"Invalid type for {simple}, expected Date but was class {java_class(value)}")
    return logical.number_of(value, kind)
