"""Values as literal texts, as SimpleHeaderConverter and InsertHeader have them: the type is read off the text."""

from __future__ import annotations

import decimal
import math
import re
from typing import Any

from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.java.dates import JavaDateFormat
from keelman.connect.java.numbers import INTEGERS, Float32
from keelman.connect.schema import Schema

_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|:|[^\[\]{},:"]+')
_TIMES: tuple[tuple[re.Pattern[str], JavaDateFormat, Schema], ...] = (
    (re.compile(r"\d{4}-\d{2}-\d{2}"), JavaDateFormat("yyyy-MM-dd"), DATE_SCHEMA),
    (re.compile(r"\d{2}:\d{2}:\d{2}\.\d{3}Z"), JavaDateFormat("HH:mm:ss.SSS'Z'"), TIME_SCHEMA),
    (
        re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z"),
        JavaDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
        TIMESTAMP_SCHEMA,
    ),
)
_WIDTHS = ("int8", "int16", "int32", "int64", "float", "double")
STRING = Schema("string")
Parsed = tuple[Schema | None, Any]


class _NoLiteralError(Exception):
    """The text is no literal, so it is a string."""


def parse_literal(text: str) -> Parsed:
    """The schema and the value that a text stands for; a string where it stands for nothing else."""
    if not text.strip():
        return STRING, text
    try:
        return _Reader(text).whole()
    except (_NoLiteralError, RecursionError):
        return STRING, text


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def whole(self) -> Parsed:
        if len(self._tokens) == 1 and self._tokens[0].startswith('"'):
            raise _NoLiteralError  # quotes matter within lists and maps only
        found = self._value(inner=False)
        if self._at < len(self._tokens):
            raise _NoLiteralError
        return found

    def _next(self) -> str:
        if self._at >= len(self._tokens):
            raise _NoLiteralError
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _value(self, *, inner: bool) -> Parsed:
        token = self._next()
        if token == "[":
            return self._list()
        if token == "{":
            return self._map()
        if inner and token.startswith('"'):
            text = re.sub(r"\\(.)", r"\1", token[1:-1])
            return next(
                ((kind, form.parse(text)) for pattern, form, kind in _TIMES if pattern.fullmatch(text)), (STRING, text)
            )
        return self._scalar(token)

    def _scalar(self, token: str) -> Parsed:
        if token in ("true", "false"):
            return Schema("boolean"), token == "true"
        if token == "null":
            return None, None
        for pattern, form, schema in _TIMES:
            # A time has colons, which are tokens of their own.
            text = token
            if ":" in form.pattern and self._peek() == ":":
                text = token + "".join(self._tokens[self._at : self._at + 4])
            if pattern.fullmatch(text):
                self._at += 4 if text is not token else 0
                return schema, form.parse(text)
        if _NUMBER.fullmatch(token):
            return _number(token)
        raise _NoLiteralError

    def _list(self) -> Parsed:
        items: list[Parsed] = []
        if self._peek() == "]":
            self._at += 1
            return Schema("array"), []
        while True:
            one = self._value(inner=True)
            if one[0] is None:
                raise _NoLiteralError
            items.append(one)
            token = self._next()
            if token == "]":
                break
            if token != ",":
                raise _NoLiteralError
        schema = _common([schema for schema, _ in items])
        return Schema("array", value=schema), [_aligned(schema, value) for _, value in items]

    def _map(self) -> Parsed:
        pairs: list[tuple[Parsed, Parsed]] = []
        if self._peek() == "}":
            self._at += 1
            return Schema("map"), {}
        while True:
            key = self._value(inner=True)
            if key[0] is None or self._next() != ":":
                raise _NoLiteralError
            pairs.append((key, self._value(inner=True)))
            token = self._next()
            if token == "}":
                break
            if token != ",":
                raise _NoLiteralError
        keys, values = _common([key[0] for key, _ in pairs]), _common([value[0] for _, value in pairs])
        made = {_aligned(keys, key[1]): _aligned(values, value[1]) for key, value in pairs}
        return Schema("map", key=keys, value=values), made


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    for token in _TOKEN.finditer(text):
        if token.start() != at:
            raise _NoLiteralError
        at = token.end()
        if token[0].strip():
            found.append(token[0].strip())
    if at != len(text):
        raise _NoLiteralError
    return found


def _number(text: str) -> Parsed:
    try:
        value = decimal.Decimal(text)
    except decimal.InvalidOperation:  # its exponent is none
        raise _NoLiteralError from None
    scale = -int(value.as_tuple().exponent)
    whole = value == value.to_integral_value() if value.adjusted() < 400 else True
    if whole and value.adjusted() < 20:
        number = int(value)
        for name, (made, bits) in INTEGERS.items():
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return Schema(name), made(number)
    if scale:
        for name, kind in (("float", Float32), ("double", float)):
            real = kind(value)
            if math.isfinite(real):
                return Schema(name), real
    schema = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", str(scale)),))
    return schema, value


def _common(schemas: list[Schema | None]) -> Schema | None:
    """One that holds for all: numbers widen, others must be equal; None where there is none."""
    first, *rest = schemas
    found = first
    for schema in rest:
        if found == schema:
            continue
        if found is None or schema is None or found.type not in _WIDTHS or schema.type not in _WIDTHS:
            return None
        found = Schema(max(found.type, schema.type, key=_WIDTHS.index))
    return found


def _aligned(schema: Schema | None, value: Any) -> Any:
    if schema is None or value is None or schema.name is not None:
        return value
    if schema.type in INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        return INTEGERS[schema.type][0](value)
    if schema.type == "float":
        return Float32(value)
    return float(value) if schema.type == "double" else value
