"""Writes Java values as Java does: toString(), Jackson's JSON, and the order of a HashMap."""

from __future__ import annotations

import base64
import decimal
import math
import re
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from keelman.connect.errors import DataError
from keelman.connect.java.dates import JavaDateFormat
from keelman.connect.java.numbers import Float32
from keelman.connect.schema import Struct
from keelman.connect.times import TIMES

_PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]*')
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_DATE = JavaDateFormat("EEE MMM dd HH:mm:ss zzz y")
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def utf8_text(data: bytes) -> str:
    """Decodes bytes like Java: U+FFFD for each malformed sequence, one for a surrogate of three bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are valid UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def valid_utf8(data: bytes) -> bytes:
    """Returns valid UTF-8 unchanged, else Java's reading of the bytes, as UTF-8."""
    return data if is_utf8(data) else utf8_text(data).encode()


def double_text(value: float) -> str:
    """Returns Java's Double.toString: 1.0, 1.0E10, 1.0E-5, NaN, Infinity."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    if 1e-3 <= abs(value) < 1e7:
        return float.__repr__(value)
    return _digits_text(value, repr(value))


def _digits_text(value: float, shortest: str) -> str:
    """Returns the shortest decimal that identifies a number among its neighbours; for one digit, the nearest of two."""
    sign, digits, exponent = decimal.Decimal(shortest).normalize().as_tuple()
    if len(digits) == 1:
        sign, digits, exponent = decimal.Decimal(f"{value:.1e}").normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)  # the value is 0.<text> times ten to this power
    minus = "-" if sign else ""
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def float_text(value: float) -> str:
    """Returns Java's Float.toString of a 32-bit number: the fewest digits that identify it (JDK 19 on)."""
    if not math.isfinite(value) or value == 0:
        return double_text(value)
    for digits in range(1, 10):
        short = f"{value:.{digits - 1}e}"
        if abs(float(short)) < 3.4028236e38 and struct.unpack(">f", struct.pack(">f", float(short)))[0] == value:
            return _digits_text(value, short)
    return double_text(value)


def decimal_text(value: decimal.Decimal) -> str:
    """Returns Java's BigDecimal.toString, which has no zero with a sign."""
    return str(value) if value else str(abs(value))


@lru_cache(maxsize=4096)
def string_hash(text: str) -> int:
    """Returns Java's String.hashCode, unsigned."""
    value = 0
    units = text.encode("utf-16-le", "surrogatepass")
    for i in range(0, len(units), 2):
        value = (value * 31 + units[i] + (units[i + 1] << 8)) & 0xFFFFFFFF
    return value


def hash_order(keys: Iterable[str], *, copied: bool = False) -> list[str]:
    """Returns the keys in the iteration order of a java.util.HashMap that was filled in this order.

    `copied`: the map was made as a copy of another map, and so has the smallest capacity.
    """
    listed = list(keys)
    size = 16
    while len(listed) > size * 3 // 4:
        size *= 2
    if copied:
        size = 1 << (int(len(listed) / 0.75 + 1) - 1).bit_length()

    def bucket(key: str) -> int:
        code = string_hash(key)
        return (code ^ (code >> 16)) & (size - 1)

    return sorted(listed, key=bucket)


def map_order(mapping: Mapping[Any, Any]) -> list[Any]:
    """Returns the keys of a map in a HashMap's order; unchanged if they are not all strings."""
    return hash_order(mapping) if all(isinstance(key, str) for key in mapping) else list(mapping)


def json_string(text: str) -> str:
    """Returns a JSON string as Jackson writes it: non-ASCII raw, control characters as upper-case hex, and so both
    surrogates of a character beyond the first 65,536, or a single surrogate."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + _TO_ESCAPE.sub(_escaped, text) + '"'


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return _SHORT.get(match[0]) or "".join(f"\\u{units[n]:02X}{units[n + 1]:02X}" for n in range(0, len(units), 2))


def json_text(value: Any) -> str:  # noqa: PLR0911  one line a type
    """Returns compact JSON as Jackson writes it, mappings in order. Raises DataError for values beyond JSON."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return json_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        text = float_text(value) if isinstance(value, Float32) else double_text(value)
        return text if math.isfinite(value) else f'"{text}"'
    if isinstance(value, decimal.Decimal):
        return decimal_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return '"' + base64.b64encode(value).decode() + '"'
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json_string(k)}:{json_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(json_text, value)) + "]"
    raise DataError(f"a {type(value).__name__} cannot be written as JSON")


def java_text(value: Any) -> str:  # noqa: PLR0911  one line a type
    """Returns Java's toString() of a Connect value: null, true, 1.0E10, {a=1}, [1, 2], Struct{a=1}.

    Bytes have no useful toString() in Java (`[B@1b2c3d`); here they are read as UTF-8.
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value) if isinstance(value, Float32) else double_text(value)
    if isinstance(value, Struct):
        inner = ((f.name, value.values.get(f.name)) for f in value.schema.fields)
        return "Struct{" + ",".join(f"{k}={java_text(v)}" for k, v in inner if v is not None) + "}"
    if isinstance(value, Mapping):
        keys = map_order(value)
        return "{" + ", ".join(f"{java_text(k)}={java_text(value[k])}" for k in keys) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(java_text, value)) + "]"
    if isinstance(value, bytes | bytearray | memoryview):
        return utf8_text(bytes(value))
    if isinstance(value, TIMES):
        return _DATE.format(value)
    return decimal_text(value) if isinstance(value, decimal.Decimal) else str(value)
