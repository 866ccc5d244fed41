"""JSON texts as Connect's parser, Jackson, accepts them: their encoding, numbers, limits, and text after them.

https://github.com/FasterXML/jackson-core: ByteSourceJsonBootstrapper, StreamReadConstraints
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from keelman.connect.errors import DataError, SerializationError

UNREADABLE = "Converting byte[] to Kafka Connect data failed due to serialization error: "
SPACES = b" \t\r\n"
MOST_DIGITS = 1000
MOST_NAME = 50_000
MOST_STRING = 20_000_000
MOST_LEVELS = 1000
_BEYOND = f"more than {MOST_LEVELS} levels, or {MOST_NAME} characters of a name, {MOST_STRING} of a string"
_HALF = MOST_NAME // 2
_LEAST_DEEP = 2 * MOST_LEVELS  # bytes: each level takes two
_MANY, _SOME = b"0" * 19, b"0" * 9
_MARKED = re.compile("[\udc80-\udcff]")
_OVERLONG = re.compile(rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]")
_ZERO = re.compile(r"0\d")
_ZEROS = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|(?<![\d.eE+])(-?)0+(?=\d)')  # a string without an end is the rest
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_MINUS_ZERO = re.compile(rb"-0\.0*(?:[eE][-+]?\d+)?(?![\d.])")
_EXPONENTS = 1 << 31


def quick_trees(texts: Sequence[bytes | None]) -> list[Any] | None:
    """Returns the trees of JSON texts in UTF-8; None if one must be read with care, or is null."""
    try:
        trees = list(map(orjson.loads, texts))  # type: ignore[arg-type]
    except (orjson.JSONDecodeError, TypeError):
        return None
    whole = b" ".join(texts)  # type: ignore[arg-type]
    # Jackson reads numbers of many digits, and zeros with a sign, as other numbers.
    if _has_long_numbers(whole) or _MINUS_ZERO.search(whole):
        return None
    doubtful = _may_exceed(whole) or _is_any_doubtful(texts)  # type: ignore[arg-type]
    return None if doubtful and not all(map(_is_within_limits, trees)) else trees


def _has_long_numbers(text: bytes) -> bool:
    """Whether there are 19 digits in a row, at least nine of them at every second byte."""
    return _SOME in text[::2].translate(_DIGITS) and _MANY in text.translate(_DIGITS)


def _may_exceed(text: bytes) -> bool:
    """Whether a name may be too long: half of its length would have no quotation mark."""
    steps = range(0, len(text) - _HALF, _HALF)
    return len(text) > MOST_NAME and any(text.find(b'"', at, at + _HALF) < 0 for at in steps)


def _is_any_doubtful(texts: Sequence[bytes]) -> bool:
    return max(map(len, texts), default=0) > _LEAST_DEEP and any(map(_is_doubtful, texts))


def _is_doubtful(text: bytes) -> bool:
    """Whether it has more brackets than levels are allowed, or quotation marks within a name that may be too long."""
    if len(text) <= _LEAST_DEEP:
        return False
    return text.count(b"[") + text.count(b"{") > MOST_LEVELS or (len(text) > MOST_NAME and b'\\"' in text)


def loads(payload: bytes, *, exact: bool = False) -> Any:
    """Returns the tree of a JSON text: null for an empty text; leading zeros are legal, text after it is ignored; with
    `exact` fractions are Decimals. Raises DataError."""
    trees = None if exact else quick_trees([payload])
    if trees is not None:
        return trees[0]
    try:
        text = _decoded(payload)
        trees = None if exact else quick_trees([text.encode("utf-8", "surrogatepass")])
        return _read(text, exact=exact) if trees is None else trees[0]
    except ValueError as error:
        raise DataError(UNREADABLE) from SerializationError(str(error))
    except RecursionError:
        raise DataError(UNREADABLE) from SerializationError(_BEYOND)


def _decoded(payload: bytes) -> str:
    """Decodes a text by its byte order mark or by the zeros among its first bytes; marks bytes that are invalid UTF-8.
    Raises ValueError."""
    four = payload[:4]
    if len(four) == 4:
        for mark, name in _MARKS:
            if four.startswith(mark):
                return _named(payload[len(mark) :], name)
        zeros = bytes(map(bool, four))
        if zeros in _UTF_32:
            return _named(payload, _UTF_32[zeros])
    zeros = bytes(map(bool, four[:2]))
    if len(four) > 1 and zeros != b"\1\1":
        return _named(payload, "utf-16-le" if zeros == b"\1\0" else "utf-16-be")
    return _named(payload, "utf-8")


def _named(data: bytes, encoding: str) -> str:
    if encoding == "utf-8":
        try:
            return data.decode()
        except UnicodeDecodeError:
            return _OVERLONG.sub(_shortened, data).decode("utf-8", "surrogateescape")
    if not encoding:
        raise ValueError("UTF-32 in an order of bytes that is neither big-endian nor little-endian")
    if encoding.startswith("utf-32"):
        return data[: len(data) // 4 * 4].decode(encoding, "surrogatepass")
    return data.decode(encoding, "replace")


def _shortened(match: re.Match[bytes]) -> bytes:
    """Returns a character that was written with more bytes than necessary, as Java does with NUL."""
    number = 0
    for byte in match[0]:
        number = (number << 6) + (byte & (0x3F if byte < 0xC0 else 0x1F if byte < 0xE0 else 0x0F))
    return json.dumps(chr(number))[1:-1].encode()


_MARKS = (
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xff\xfe", ""),
    (b"\xfe\xff\x00\x00", ""),
    (b"\xfe\xff", "utf-16-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xef\xbb\xbf", "utf-8"),
)
_UTF_32 = {
    b"\0\0\0\1": "utf-32-be",
    b"\1\0\0\0": "utf-32-le",
    b"\0\1\0\0": "",
    b"\0\0\1\0": "",
    b"\0\0\0\0": "utf-32-be",
}
"""Encodings by which of the first four bytes are not 0; empty if the order of bytes is not supported."""


def _read(text: str, *, exact: bool) -> Any:
    """Parses a text. Raises ValueError."""
    text = text.lstrip(" \t\r\n")
    if not text:
        return None
    if _ZERO.search(text) is not None:
        text = _ZEROS.sub(lambda match: match[1] or match[2] or "", text)
    tree, end = (_EXACT if exact else _LENIENT).raw_decode(text)
    marked = _MARKED.search(text, 0, end)
    if marked is not None:
        raise ValueError(f"the byte {ord(marked[0]) & 0xFF:#x} at character {marked.start()} is none of UTF-8")
    _check_end(text, end)
    if not _is_within_limits(tree):
        raise ValueError(_BEYOND)
    return tree


def _check_end(text: str, end: int) -> None:
    """Raises ValueError unless a number is followed by a space or nothing, a word by nothing that could continue it."""
    behind = text[end : end + 1]
    if not behind:
        return
    bad = behind not in " \t\r\n" if text[0] in "-0123456789" else behind in _WORDS or not behind.isascii()
    if bad and text[0] not in '"[{':
        raise ValueError(f"the character {behind!r} follows the value at once")


_WORDS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def _is_within_limits(tree: Any) -> bool:
    level = [tree]
    for _ in range(MOST_LEVELS):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                if any(_is_longer(name, MOST_NAME) for name in node):
                    return False
                inner += node.values()
            elif isinstance(node, list):
                inner += node
            elif isinstance(node, str) and _is_longer(node, MOST_STRING):
                return False
        if not inner:
            return True
        level = inner
    return not any(isinstance(item, dict | list) for item in level)


def _is_longer(text: str, most: int) -> bool:
    """Whether a text has more than `most` of Java's characters: two for one beyond the first plane."""
    if len(text) > most or 2 * len(text) <= most or text.isascii():
        return len(text) > most
    return len(text.encode("utf-16-le", "surrogatepass")) > 2 * most


def _whole(text: str) -> int:
    _check_digits(len(text) - text.startswith("-"))
    return int(text)


def _fraction(text: str) -> decimal.Decimal:
    _check_digits(sum(map(str.isdigit, text)) if len(text) > MOST_DIGITS else 0)
    mantissa, _, exponent = text.lower().partition("e")
    scale = len(mantissa.partition(".")[2]) - int(exponent or 0)
    if not -_EXPONENTS <= scale < _EXPONENTS:
        raise ValueError(f"the exponent of the number {text[:100]} is beyond 32 bits")
    number = decimal.Decimal(text)
    return number if number else abs(number)


def _check_digits(digits: int) -> None:
    if digits > MOST_DIGITS:
        raise ValueError(f"a number has {digits} digits, more than {MOST_DIGITS}")


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _decoder(parse_float: Callable[[str], Any]) -> json.JSONDecoder:
    return json.JSONDecoder(parse_float=parse_float, parse_int=_whole, parse_constant=_constant)


_LENIENT, _EXACT = _decoder(lambda text: float(_fraction(text))), _decoder(_fraction)
