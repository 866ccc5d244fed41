"""Writes Connect's data as JSON under a JSON Schema: one function for a schema, created once."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from keelman.connect.converters.json_data import Plain
from keelman.connect.converters.logical import LOGICAL
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32
from keelman.connect.java.text import hash_order, json_text
from keelman.connect.json_schema.write_schema import KEY, VALUE, JsonSchemaOptions, is_object_map, is_union
from keelman.connect.schema import INTEGER_RANGES, Schema, Struct, checked

_Write = Callable[[Any], Any]
_EXACT: dict[str, Any] = {"string": str, "boolean": bool, **dict.fromkeys(INTEGER_RANGES, int)}
_LEFT_OUT = object()
_ESCAPED = re.compile(rb"\\u|[\xf0-\xff]")


class _Odd(float):
    """A number that Java writes differently."""


class ValueWriter:
    """Writes values of one schema, for any thread."""

    def __init__(self, schema: Schema, options: JsonSchemaOptions) -> None:
        self._options = options
        self._plain = Plain(numeric=options.numeric)
        self._made: dict[int, list[_Write]] = {}
        self._write = self._value(schema)

    def tree(self, value: Any) -> Any:
        """Returns a value in JSON's own types. Raises DataError."""
        try:
            node = self._write(value)
        except RecursionError:
            raise DataError("The value is nested too deeply for JSON") from None
        return None if node is _LEFT_OUT else node

    def write(self, value: Any) -> bytes | None:
        """Returns its JSON; None for a null that the schema does not allow: a null record. Raises DataError."""
        try:
            tree = self._write(value)
            if tree is _LEFT_OUT:
                return None
            return written(tree)
        except RecursionError:
            raise DataError("The value is nested too deeply for JSON") from None

    def _value(self, schema: Schema) -> _Write:
        """Creates a schema's function; a schema that contains itself calls the function under construction."""
        entry = self._made.get(id(schema))
        if entry is not None:
            return lambda value: entry[0](value)  # noqa: PLW0108  it is not there yet
        self._made[id(schema)] = cell = []
        convert = self._converted(schema)
        instead: Any = None if schema.optional else _LEFT_OUT
        if schema.default is not None and not self._options.ignore_default_for_nullables:
            instead = convert(schema.default)

        write = _quick(schema, convert, instead)
        cell.append(write)
        return write

    def _converted(self, schema: Schema) -> _Write:  # noqa: PLR0911  one line a type
        kind = schema.type
        if schema.name in LOGICAL:
            return lambda value: _base64(self._plain.tree(schema, value))
        if kind == "struct":
            return self._union(schema) if is_union(schema) else self._struct(schema)
        if kind == "array":
            assert schema.value is not None
            each = self._value(schema.value)
            return lambda values: [_null(each(item)) for item in checked(schema, values)]  # type: ignore[attr-defined]
        if kind == "map":
            return self._map(schema)
        if kind == "bytes":
            return lambda value: _base64(bytes(checked(schema, value)))  # type: ignore[call-overload]
        if kind in ("float", "double"):
            return lambda value: _number(checked(schema, value), kind)
        return lambda value: checked(schema, value)

    def _map(self, schema: Schema) -> _Write:
        assert schema.key is not None
        assert schema.value is not None
        key, value = self._value(schema.key), self._value(schema.value)
        if is_object_map(schema):

            def write(mapping: Any) -> Any:
                checked(schema, mapping)
                for name in mapping:
                    key(name)
                return {key: _null(value(mapping[key])) for key in hash_order(mapping)}

            return write
        return lambda mapping: [
            {KEY: _null(key(k)), VALUE: _null(value(v))}
            for k, v in checked(schema, mapping).items()  # type: ignore[attr-defined]
        ]

    def _union(self, schema: Schema) -> _Write:
        members = [(field.name, self._value(field.schema)) for field in schema.fields]
        nothing = None if schema.optional else _LEFT_OUT

        def write(struct: Any) -> Any:
            checked(schema, struct)
            for name, convert in members:
                value = struct.values.get(name)
                if value is not None:
                    return convert(value)
            return nothing

        return write

    def _struct(self, schema: Schema) -> _Write:
        fields = [(field.name, self._value(field.schema)) for field in schema.fields]

        def write(struct: Any) -> Any:
            if not isinstance(struct, Struct):
                checked(schema, struct)
            if struct.schema is not schema and struct.schema != schema:
                raise DataError("Mismatching schema.")
            values, tree, name = struct.values, {}, ""
            try:
                for name, convert in fields:
                    node = convert(values.get(name))
                    if node is not _LEFT_OUT:
                        tree[name] = node
            except DataError as error:
                raise DataError(f"Field {name}: {error}") from None
            return tree

        return write


def _quick(schema: Schema, convert: _Write, instead: Any) -> _Write:
    """Returns a function that handles the usual values in one call."""
    exact: Any = None if schema.name in LOGICAL else _EXACT.get(schema.type)
    bound = INTEGER_RANGES.get(schema.type, 0)
    if schema.type == "double":

        def double(value: Any) -> Any:
            if value.__class__ is float and (1e-3 <= value < 1e7 or -1e7 < value <= -1e-3 or value == 0.0):
                return value
            return instead if value is None else convert(value)

        return double

    def write(value: Any) -> Any:
        if value.__class__ is exact and (not bound or -bound <= value < bound):
            return value
        return instead if value is None else convert(value)

    return write


def written(tree: Any) -> bytes:
    """Returns the JSON of a tree as Java writes it."""
    try:
        quick = orjson.dumps(tree)
    except (TypeError, orjson.JSONEncodeError):
        return json_text(tree).encode()
    plain = b"\\u" not in quick if quick.isascii() else _ESCAPED.search(quick) is None
    return quick if plain else json_text(tree).encode()


def _null(value: Any) -> Any:
    return None if value is _LEFT_OUT else value


def _base64(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _number(value: Any, kind: str) -> Any:
    if not math.isfinite(value):
        return json_text(float(value)).strip('"')  # Java writes it as a text
    return Float32(value) if kind == "float" else _Odd(value)
