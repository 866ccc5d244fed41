"""Java's numbers: the narrow kinds in data without a schema, and how Java truncates and parses them."""

from __future__ import annotations

import decimal
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from keelman.connect.schema import Struct
from keelman.connect.times import TIMES


class Int8(int):
    """A java.lang.Byte. A plain int is a java.lang.Long."""


class Int16(int):
    """A java.lang.Short."""


class Int32(int):
    """A java.lang.Integer."""


class Float32(float):
    """A java.lang.Float; the value fits 32 bits. A plain float is a java.lang.Double."""

    def __new__(cls, value: Any) -> Float32:
        """Rounds any number to the nearest value; a number that is too large becomes infinite."""
        wide = float(value)
        try:
            wide = struct.unpack(">f", struct.pack(">f", wide))[0]
        except OverflowError:
            wide = math.copysign(math.inf, wide)
        return super().__new__(cls, wide)


INTEGERS: Mapping[str, tuple[type[int], int]] = {
    "int8": (Int8, 8),
    "int16": (Int16, 16),
    "int32": (Int32, 32),
    "int64": (int, 64),
}
"""The class of values of each type, and its bits."""

_CLASSES: tuple[tuple[type, str], ...] = (
    (bool, "java.lang.Boolean"),
    (Int8, "java.lang.Byte"),
    (Int16, "java.lang.Short"),
    (Int32, "java.lang.Integer"),
    (int, "java.lang.Long"),
    (Float32, "java.lang.Float"),
    (float, "java.lang.Double"),
    (str, "java.lang.String"),
    (bytes, "[B"),
    (decimal.Decimal, "java.math.BigDecimal"),
    *((name, "java.util.Date") for name in TIMES),
    (list, "java.util.ArrayList"),
    (dict, "java.util.HashMap"),
    (Struct, "org.apache.kafka.connect.data.Struct"),
)
_BY_TYPE = dict(_CLASSES)
_TYPES: Mapping[str, str] = {
    "java.lang.Boolean": "boolean",
    "java.lang.Byte": "int8",
    "java.lang.Short": "int16",
    "java.lang.Integer": "int32",
    "java.lang.Long": "int64",
    "java.lang.Float": "float",
    "java.lang.Double": "double",
    "java.lang.String": "string",
    "[B": "bytes",
    "java.util.ArrayList": "array",
    "java.util.HashMap": "map",
    "org.apache.kafka.connect.data.Struct": "struct",
}
_WHOLE = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[\x00-\x20]*[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)[\x00-\x20]*")


class NumberFormatError(ValueError):
    """Java's NumberFormatException."""


def java_class(value: object) -> str:
    """Returns the name of a value's class in Java, as Class.getName returns it."""
    java_name = _BY_TYPE.get(type(value))
    if java_name is None:
        java_name = next((name for kind, name in _CLASSES if isinstance(value, kind)), "java.lang.Object")
    return java_name


def type_of(value: object) -> str | None:
    """Returns the type, one of keelman.connect.schema.TYPES, of a value without a schema; None without such a type."""
    return _TYPES.get(java_class(value))


def cut(value: Any, bits: int) -> int:
    """Returns a number in so many bits: whole numbers lose their upper bits; others first lose their fraction and are
    clipped to 32 bits (for 64 to 64), with 0 for NaN. Java Language Specification 17, 5.1.3."""
    if isinstance(value, float):
        wide = max(bits, 32)
        if math.isnan(value):
            return 0
        most = (1 << wide - 1) - 1
        whole = most if value >= most else -most - 1 if value <= -most - 1 else int(value)
    else:
        whole = int(value)
    whole &= (1 << bits) - 1
    return whole - (1 << bits) if whole >> bits - 1 else whole


def clipped(value: int) -> int:
    """Returns the nearest whole number of 64 bits, as java.util.concurrent.TimeUnit converts."""
    return max(-(1 << 63), min(value, (1 << 63) - 1))


def parse_whole(text: str, bits: int) -> int:
    """Parses like Byte.parseByte, Short.parseShort, Integer.parseInt and Long.parseLong. Raises NumberFormatError."""
    if not _WHOLE.fullmatch(text):
        raise NumberFormatError(f'For input string: "{text}"')
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        out_of = bits < 32
        message = f'Value out of range. Value:"{text}" Radix:10' if out_of else f'For input string: "{text}"'
        raise NumberFormatError(message)
    return value


def parse_real(text: str) -> float:
    """Parses like Double.parseDouble, except for hexadecimal numbers. Raises NumberFormatError."""
    if not text.strip():
        raise NumberFormatError("empty String")
    if not _REAL.fullmatch(text):
        raise NumberFormatError(f'For input string: "{text}"')
    return float(text.strip().rstrip("fFdD") if not text.strip().endswith("Infinity") else text.strip())
