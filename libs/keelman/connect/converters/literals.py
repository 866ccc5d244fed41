"""Values as literal texts, as in SimpleHeaderConverter and InsertHeader: the text determines the type."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Iterable
from typing import Any

from keelman.connect.converters.logical import (
    DATE,
    DATE_FORM,
    DATE_SCHEMA,
    DECIMAL,
    TIME_FORM,
    TIME_SCHEMA,
    TIMESTAMP_FORM,
    TIMESTAMP_SCHEMA,
    day,
)
from keelman.connect.java.dates import JavaDateFormat, ParseError
from keelman.connect.java.numbers import INTEGERS, Float32
from keelman.connect.schema import Schema
from keelman.connect.times import TIMES, moment

_NUMBER = re.compile(r"(?:[+-]?\d+(\.\d*)?|[+-]\.\d+)([eE][+-]?\d+)?")
# A delimiter after a backslash does not count as one.
_TOKEN = re.compile(r'[\[\]{},:"]|(?:\\.|[^\[\]{},:"\\]|\\$)+', re.DOTALL)
_BLANKS = "".join(map(chr, range(0x21)))
"""The characters that Java's trim removes."""
_TIMES: dict[int, tuple[JavaDateFormat, Schema]] = {
    10: (DATE_FORM, DATE_SCHEMA),
    13: (TIME_FORM, TIME_SCHEMA),
    24: (TIMESTAMP_FORM, TIMESTAMP_SCHEMA),
}
"""The time formats, by the length of their texts."""
_PARTS_OF_TIME = 4
_WIDTHS = ("int8", "int16", "int32", "int64", "float", "double")
_BEGINS = frozenset({"[", "{", "+", "-"})
STRING = Schema("string")
Parsed = tuple[Schema | None, Any]
_WORDS: dict[str, Parsed] = {
    "null": (None, None),
    **{word: (Schema("boolean"), word == "true") for word in ("true", "false")},
}


class _NoLiteralError(Exception):
    """The text is no literal, so it is a string."""


def parse_literal(text: str) -> Parsed:
    """Returns the schema and the value of a text; a string if it is no other literal. As in Connect, any text
    after a value is ignored."""
    word = text.strip(_BLANKS)
    if word in _WORDS:
        return _WORDS[word]
    if not word[:1].isdigit() and word[:1] not in _BEGINS:
        return STRING, text
    try:
        if _NUMBER.fullmatch(word):
            return _number(word)
        return _Reader(text).value(inner=False)
    except (_NoLiteralError, RecursionError):
        return STRING, text


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(text)
        self._words = [token.strip(_BLANKS) for token in self._tokens]
        self._at = 0

    def _peek(self) -> str:
        """Returns the next token that is not blank, without blanks around it; empty at the end."""
        at = self._at
        while at < len(self._words) and not self._words[at]:
            at += 1
        return self._words[at] if at < len(self._words) else ""

    def _take(self, token: str) -> bool:
        """Takes the next token if it is this one, with the blank ones before it."""
        if self._peek() != token:
            return False
        self._next()
        return True

    def _next(self) -> str:
        """Takes the next token, without blanks, and the blank ones before it."""
        while self._at < len(self._words):
            self._at += 1
            if self._words[self._at - 1]:
                return self._words[self._at - 1]
        raise _NoLiteralError

    def value(self, *, inner: bool) -> Parsed:
        """Reads a value. Raises _NoLiteralError."""
        if inner and self._take('"'):
            return self._quoted()
        token = self._peek()
        if inner and token in _WORDS:
            self._next()
            return _WORDS[token]
        begin = self._at
        try:
            if self._take("["):
                return self._list()
            if self._take("{"):
                return self._map()
        except _NoLiteralError:
            blank = self._tokens[begin]
            if inner or self._words[begin]:
                raise
            return STRING, blank  # as in Connect
        return self._scalar(self._next())

    def _quoted(self) -> Parsed:
        text = ""
        while self._at < len(self._tokens) and not self._take('"'):
            text += self._tokens[self._at]
            self._at += 1
        return _time(text) or (STRING, text)

    def _scalar(self, token: str) -> Parsed:
        if token[:1].isdigit():
            # A time has colons, which are separate tokens.
            rest = self._tokens[self._at : self._at + _PARTS_OF_TIME]
            time = _time(token + "".join(rest)) if len(rest) == _PARTS_OF_TIME else None
            if time is not None:
                self._at += _PARTS_OF_TIME
                return time
            time = _time(token)
            if time is not None:
                return time
        if _NUMBER.fullmatch(token):
            return _number(token)
        raise _NoLiteralError

    def _list(self) -> Parsed:
        items: list[Parsed] = []
        while not self._take("]"):
            items.append(self.value(inner=True))
            if not self._take(","):
                if not self._take("]"):
                    raise _NoLiteralError
                break
        schema = _common(schema for schema, _ in items)
        return Schema("array", value=schema), [_aligned(schema, value) for _, value in items]

    def _map(self) -> Parsed:
        pairs: list[tuple[Parsed, Parsed]] = []
        while not self._take("}"):
            key = self.value(inner=True)
            # Python has no maps with lists or maps as keys, as Java does.
            if key[1] is None or isinstance(key[1], list | dict) or not self._take(":"):
                raise _NoLiteralError
            pairs.append((key, self.value(inner=True)))
            self._take(",")
        keys = _common(key[0] for key, _ in pairs)
        values = None if keys is None else _common(value[0] for _, value in pairs)
        last = {key[1]: value[1] for key, value in pairs}
        mapping = {_aligned(keys, key): _aligned(values, value) for key, value in last.items()}
        return Schema("map", key=keys, value=values), mapping


def _time(text: str) -> Parsed | None:
    text = text.replace("\\:", ":")
    time_form = _TIMES.get(len(text))
    if time_form is None:
        return None
    form, schema = time_form
    try:
        return schema, form.parse(text)
    except ParseError:
        return None


def _number(text: str) -> Parsed:
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:  # its exponent is invalid
        raise _NoLiteralError from None
    scale = -int(value.as_tuple().exponent)
    if not -(1 << 31) < scale < 1 << 31:
        raise _NoLiteralError
    whole = value == value.to_integral_value() if value.adjusted() < 400 else True
    if whole and value.adjusted() < 20:
        number = int(value)
        for name, (integer, bits) in INTEGERS.items():
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return Schema(name), integer(number)
    if scale:
        for name, kind in (("float", Float32), ("double", float)):
            real = kind(value)
            if math.isfinite(real):
                return Schema(name), real
    schema = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", str(scale)),))
    return schema, value


def _common(schemas: Iterable[Schema | None]) -> Schema | None:
    """Returns a schema for all non-null values: the wider of numbers, the last of one type; None without one."""
    widest: Schema | None = None
    for schema in schemas:
        if widest is None or schema is None or widest.type == schema.type:
            widest = schema or widest
        elif widest.type in _WIDTHS and schema.type in _WIDTHS:
            widest = max(schema, widest, key=lambda candidate: _WIDTHS.index(candidate.type))
        else:
            return None
    return widest


def _aligned(schema: Schema | None, value: Any) -> Any:
    """Converts a value to the common schema. Raises _NoLiteralError."""
    if schema is None or schema.type not in _WIDTHS:
        if schema is not None and value is None:
            raise _NoLiteralError
        return value
    if schema.name is not None and isinstance(value, TIMES):
        return value
    if not isinstance(value, int | float):
        raise _NoLiteralError
    if schema.name is not None:
        return day(int(value)) if schema.name == DATE else moment(int(value))
    if schema.type in INTEGERS:
        return INTEGERS[schema.type][0](value)
    return Float32(value) if schema.type == "float" else float(value)
