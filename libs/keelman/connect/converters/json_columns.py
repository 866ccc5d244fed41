"""Writes and reads JSON of many values at once, if the result is certain to equal that of each alone."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import NoneType
from typing import Any

import orjson

from keelman.connect.batch_splitting import merged, places_of
from keelman.connect.columns import Constant, StructColumn, apart
from keelman.connect.converters.json_data import CareError, Plain, in_order, quick_json, read
from keelman.connect.converters.logical import DECIMAL, LOGICAL, TIMESTAMP, number_of
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Int8, Int16, Int32
from keelman.connect.java.text import is_utf8, json_string, json_text, utf8_text
from keelman.connect.records import Column
from keelman.connect.schema import INTEGER_RANGES, Schema, Struct
from keelman.connect.times import TIMES, ms_of

# Characters that a JSON string escapes; Jackson writes escapes, too, beyond the first plane.
_BEYOND = bytes(range(0xF0, 0x100))
_SPECIAL = b'"\\' + bytes(set(range(0x20)) - {0x0A}) + _BEYOND
_UNLIKE_JAVA = re.compile(r"[en]|\d{8}\.|0\.000")
_INTEGERS = {int, Int8, Int16, Int32}
_TIMES = set(TIMES)


@dataclass(frozen=True, slots=True)
class _Texts:
    """The JSON of values; for strings without their quotes, also as UTF-8 bytes."""

    values: Sequence[Any]
    quote: str = ""

    def whole(self) -> Sequence[Any]:
        return [f'"{value}"' for value in self.values] if self.quote else self.values


class JsonColumns:
    """Writes columns."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain

    def objects(self, structs: StructColumn, count: int, begin: str = "", end: str = "") -> list[bytes]:
        """Returns an object for each, between two texts. Raises CareError if some value must be written alone."""
        pieces, columns = self._members(structs, begin, end)
        if not columns:
            return [pieces[0].encode()] * count
        if all(type(column.values[0]) is bytes for column in columns):
            fixed = [piece.encode() for piece in pieces]
            if len(fixed) == 2:
                return [fixed[0] + value + fixed[1] for value in columns[0].values]
            form = b"%b".join(piece.replace(b"%", b"%%") for piece in fixed)
            return list(map(form.__mod__, zip(*(column.values for column in columns), strict=True)))
        return _encoded(_filled(pieces, columns))

    def texts(self, schema: Schema | None, values: list[Any], begin: str = "", end: str = "") -> list[bytes]:
        """Returns one text for each. Raises CareError if some value must be written alone."""
        texts = self._texts(schema, values)
        return _encoded(_filled([begin + texts.quote, texts.quote + end], [texts]))

    def _members(self, structs: StructColumn, begin: str, end: str) -> tuple[list[str], list[_Texts]]:
        """Returns the texts before, between and after the columns, and the columns."""
        schema = structs.schema
        names = in_order(tuple(structs.names)) if schema is None else structs.names
        schemas = {} if schema is None else {field.name: field.schema for field in schema.fields}
        pieces: list[str] = []
        columns: list[_Texts] = []
        text = begin + "{"
        for index, name in enumerate(names):
            text += ("," if index else "") + json_string(name) + ":"
            field = structs.fields.get(name, Constant(None))
            if isinstance(field, Constant):
                text += self._one(schemas.get(name), field.value)
                continue
            utf8_texts = self._utf8(field) if field.utf8 else None
            columns.append(utf8_texts or self._texts(schemas.get(name), field.texts().values))
            pieces.append(text + columns[-1].quote)
            text = columns[-1].quote
        return [*pieces, text + "}" + end], columns

    def _utf8(self, column: Column) -> _Texts | None:
        """Returns the texts of strings that need no escapes in JSON."""
        try:
            whole = b"\n".join(column.values)
        except TypeError:
            return None
        lines = whole.count(b"\n") == len(column.values) - 1
        if not lines or len(whole.translate(None, _SPECIAL)) < len(whole) or not is_utf8(whole):
            return _Texts([json_string(utf8_text(value))[1:-1] for value in column.values], '"')
        return _Texts(column.values, '"')

    def _texts(self, schema: Schema | None, values: list[Any]) -> _Texts:
        kinds = set(map(type, values))
        if NoneType in kinds:
            return self._with_nulls(schema, values)
        texts = _bare(self, values, kinds) if schema is None else self._by_schema(schema, values, kinds)
        return texts or _Texts([self._one(schema, value) for value in values])

    def _with_nulls(self, schema: Schema | None, values: list[Any]) -> _Texts:
        null = self._one(schema, None)
        there = [value for value in values if value is not None]
        texts = iter(self._texts(schema, there).whole() if there else ())
        return _Texts([null if value is None else next(texts) for value in values])

    def _one(self, schema: Schema | None, value: Any) -> str:
        written = quick_json(value) if schema is None else None
        if written is not None:
            return written.decode()
        try:
            return json_text(self._plain.tree(schema, value))
        except DataError:
            raise CareError from None

    def _by_schema(self, schema: Schema, values: list[Any], kinds: set[type]) -> _Texts | None:
        """Writes values by their schema; None if they must be written one by one."""
        if schema.name in LOGICAL and kinds <= _TIMES and schema.name != DECIMAL:
            values, kinds = _numbers(schema, values), {int}
        kind = schema.type
        if kind in INTEGER_RANGES:
            bound = INTEGER_RANGES[kind]
            return _Texts(values) if kinds <= _INTEGERS and -bound <= min(values) <= max(values) < bound else None
        if schema.name in LOGICAL:
            return None
        if kind == "struct":
            return self._structs(schema, values, kinds)
        if kind == "array":
            return self._arrays(schema.value, values) if kinds == {list} else None
        python_type = _PLAIN.get(kind)
        return _bare(self, values, kinds) if python_type is not None and kinds == {python_type} else None

    def _structs(self, schema: Schema, values: list[Any], kinds: set[type]) -> _Texts | None:
        if kinds != {Struct}:
            return None
        others = {id(value.schema): value.schema for value in values}
        if any(other is not schema and other != schema for other in others.values()):
            return None
        return _Texts(_filled(*self._members(StructColumn(schema, rows=values), "", ""), len(values)))

    def maps(self, values: list[Any]) -> _Texts | None:
        """Writes maps without a schema, grouped by their keys."""
        places = places_of(map(tuple, values))
        if len(places) == 1:
            return _Texts(_filled(*self._members(StructColumn(None, rows=values), "", ""), len(values)))
        if len(places) * 4 > len(values):
            return None
        parts = [(at, self.maps([values[place] for place in at])) for at in places.values()]
        return _Texts(merged(((at, part.values) for at, part in parts if part is not None), len(values)))

    def _arrays(self, schema: Schema | None, values: list[Any]) -> _Texts:
        inner = list(chain.from_iterable(values))
        texts = iter(map(str, self._texts(schema, inner).whole()) if inner else ())
        return _Texts([f"[{','.join(islice(texts, size))}]" for size in map(len, values)])

    def lists(self, values: list[Any]) -> _Texts:
        """Writes lists without a schema."""
        return self._arrays(None, values)


def _bare(columns: JsonColumns, values: list[Any], kinds: set[type]) -> _Texts | None:  # noqa: PLR0911  one a kind
    """Writes values of one kind without a schema; None if they must be written one by one."""
    if kinds == {str}:
        return _Texts(values if _as_they_are(values) else [json_string(value)[1:-1] for value in values], '"')
    if kinds == {float}:
        texts = list(map(repr, values))
        return None if _UNLIKE_JAVA.search(",".join(texts)) else _Texts(texts)
    if kinds == {bool}:
        return _Texts(["true" if value else "false" for value in values])
    if kinds == {bytes}:
        return _Texts([base64.b64encode(value).decode() for value in values], '"')
    if kinds == {dict}:
        return columns.maps(values)
    if kinds == {list}:
        return columns.lists(values)
    return _Texts(values) if kinds <= _INTEGERS else None


def _numbers(schema: Schema, times: list[Any]) -> list[int]:
    if schema.name == TIMESTAMP:
        return list(map(ms_of, times))
    try:
        return [number_of(time, schema.name) for time in times]
    except DataError:
        raise CareError from None


def _as_they_are(values: list[str]) -> bool:
    """Whether all can be put between quotes unchanged."""
    whole = "".join(values)
    try:
        written = orjson.dumps(whole)
    except orjson.JSONEncodeError:
        return False
    if whole.isascii():
        return len(written) == len(whole) + 2
    return len(written) == len(whole.encode()) + 2 and len(written.translate(None, _BEYOND)) == len(written)


def _filled(pieces: list[str], columns: list[_Texts], count: int = 0) -> list[str]:
    if not columns:
        return pieces * count
    form = "%s".join(piece.replace("%", "%%") for piece in pieces)
    # Strings in UTF-8 have no line ends here.
    whole = [
        b"\n".join(column.values).decode().split("\n") if type(column.values[0]) is bytes else column.values
        for column in columns
    ]
    return list(map(form.__mod__, zip(*whole, strict=True)))


def _encoded(texts: list[str]) -> list[bytes]:
    try:
        return list(map(str.encode, texts))
    except UnicodeEncodeError:
        raise CareError from None


_PLAIN: dict[str, type] = {"string": str, "double": float, "boolean": bool, "bytes": bytes}


def read_structs(schema: Schema, trees: list[Any], *, defaults: bool) -> StructColumn | None:
    """Reads trees as columns if all are structs; None if some are not. Raises DataError."""
    if schema.type != "struct" or not schema.fields or set(map(type, trees)) != {dict}:
        return None
    columns = apart([field.name for field in schema.fields], trees)
    return StructColumn(
        schema, {f.name: Column(read_all(f.schema, columns[f.name].values, defaults=defaults)) for f in schema.fields}
    )


def read_all(schema: Schema, trees: list[Any], *, defaults: bool) -> list[Any]:
    """Reads each tree like `read`. Raises DataError."""
    kinds = set(map(type, trees))
    if NoneType in kinds:
        there = [tree for tree in trees if tree is not None]
        null = read(schema, None, defaults=defaults)
        values = iter(read_all(schema, there, defaults=defaults) if there else ())
        return [null if tree is None else next(values) for tree in trees]
    if schema.name in LOGICAL:
        return _one_by_one(schema, trees, defaults=defaults)
    kind = schema.type
    structs = read_structs(schema, trees, defaults=defaults)
    if structs is not None:
        return structs.rows(len(trees))
    if kind in INTEGER_RANGES and kinds == {int}:
        bound = INTEGER_RANGES[kind]
        if -bound <= min(trees) <= max(trees) < bound:
            return trees
    if (kind, kinds) in _READ_AS_THEY_ARE:
        return trees
    return _one_by_one(schema, trees, defaults=defaults)


def _one_by_one(schema: Schema, trees: list[Any], *, defaults: bool) -> list[Any]:
    return [read(schema, tree, defaults=defaults) for tree in trees]


_READ_AS_THEY_ARE = (("string", {str}), ("double", {float}), ("boolean", {bool}))
