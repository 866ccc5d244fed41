"""Converts JSON under a JSON Schema to Connect's data: one function for a schema, created once."""

from __future__ import annotations

import base64
import decimal
from collections.abc import Callable, Mapping
from typing import Any

from keelman.connect.converters.json_text import SPACES, loads
from keelman.connect.converters.logical import (
    DATE,
    DECIMAL,
    LOGICAL,
    TIME,
    TIMESTAMP,
    day,
    decimal_of,
    scale_of,
    time_of_day,
)
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32
from keelman.connect.json_schema.write_schema import KEY, VALUE, JsonSchemaOptions, is_object_map, is_union
from keelman.connect.schema import INTEGER_RANGES, Schema, Struct, java_type
from keelman.connect.times import moment

_Read = Callable[[Any], Any]
_MAX_ADJUSTED = 20
_EXACT: dict[str, Any] = {"string": str, "boolean": bool, "double": float, **dict.fromkeys(INTEGER_RANGES, int)}
_NODES: Mapping[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    decimal.Decimal: "a number",
    type(None): "null",
}


class ValueReader:
    """Reads values of one schema, for any thread."""

    def __init__(self, schema: Schema, options: JsonSchemaOptions) -> None:
        self.schema = schema
        self._options = options
        self._decimals = False
        self._made: dict[int, list[_Read]] = {}
        self._read = self._value(schema)

    def value(self, tree: Any) -> Any:
        """Returns the value of a tree. Raises DataError."""
        try:
            return self._read(tree)
        except RecursionError:
            raise DataError("The JSON is nested too deeply") from None

    def parse(self, data: bytes) -> Any:
        """Returns the tree of a JSON text; with all digits if decimals are numbers. Raises DataError."""
        if not data.strip(SPACES):
            raise DataError("The payload is no JSON: it is empty")
        try:
            return loads(data, exact=self._decimals)
        except DataError as error:
            raise DataError(f"The payload is no JSON: {error.__cause__}"[:500]) from None

    def _value(self, schema: Schema) -> _Read:
        """Creates a schema's function; a schema that contains itself calls the function under construction."""
        entry = self._made.get(id(schema))
        if entry is not None:
            return lambda tree: entry[0](tree)  # noqa: PLW0108  it is not there yet
        self._made[id(schema)] = cell = []
        convert = self._converted(schema)
        default, optional = schema.default, schema.optional
        if default is not None and self._options.ignore_default_for_nullables and optional:
            default = None

        exact: Any = None if schema.name in LOGICAL else _EXACT.get(schema.type)
        bound = INTEGER_RANGES.get(schema.type, 0)

        def read(tree: Any) -> Any:
            if tree.__class__ is exact and (not bound or -bound <= tree < bound):
                return tree
            if tree is not None:
                return convert(tree)
            if default is None and not optional:
                raise DataError(f"Invalid null value for required {java_type(schema)} field")
            return default

        cell.append(read)
        return read

    def _converted(self, schema: Schema) -> _Read:  # noqa: PLR0911  one line a type
        kind = schema.type
        if schema.name == DECIMAL:
            self._decimals = True
            return _decimals(scale_of(schema))
        if kind == "struct":
            return self._union(schema) if is_union(schema) else self._struct(schema)
        if kind == "array":
            assert schema.value is not None
            each = self._value(schema.value)
            return lambda tree: [each(item) for item in _of(list, tree, schema)]
        if kind == "map":
            return self._map(schema)
        if kind in INTEGER_RANGES:
            whole = _whole(schema)
            if schema.name == DATE:
                return lambda tree: day(whole(tree))
            if schema.name == TIME:
                return lambda tree: time_of_day(whole(tree))
            return (lambda tree: moment(whole(tree))) if schema.name == TIMESTAMP else whole
        if kind == "float":
            return lambda tree: Float32(_real(tree, schema))
        if kind == "double":
            return lambda tree: _real(tree, schema)
        if kind == "bytes":
            return lambda tree: _bytes(tree)  # noqa: PLW0108
        exact = bool if kind == "boolean" else str
        return lambda tree: tree if tree.__class__ is exact else _of(exact, tree, schema)

    def _map(self, schema: Schema) -> _Read:
        assert schema.key is not None
        assert schema.value is not None
        value = self._value(schema.value)
        if is_object_map(schema):
            return lambda tree: {name: value(item) for name, item in _of(dict, tree, schema).items()}
        key = self._value(schema.key)

        def read(tree: Any) -> dict[Any, Any]:
            mapping = {}
            for entry in _of(list, tree, schema):
                if not isinstance(entry, dict) or entry.keys() != {KEY, VALUE}:
                    raise DataError(f"An entry of a map is an object of key and value, not {_NODES.get(type(entry))}")
                try:
                    mapping[key(entry[KEY])] = value(entry[VALUE])
                except TypeError:
                    raise DataError("The key of a map cannot be one") from None
            return mapping

        return read

    def _struct(self, schema: Schema) -> _Read:
        fields = [(field.name, self._value(field.schema), field.schema.default) for field in schema.fields]

        def read(tree: Any) -> Struct:
            if tree.__class__ is not dict:
                _of(dict, tree, schema)
            values, name = {}, ""
            try:
                for name, convert, default in fields:
                    if name in tree:
                        values[name] = convert(tree[name])
                    elif default is not None:
                        values[name] = default
            except DataError as error:
                raise DataError(f"Field {name}: {error}") from None
            return Struct(schema, values)

        return read

    def _union(self, schema: Schema) -> _Read:
        """Takes the first member that fits a value; among objects the member with the most of their names."""
        members = [(field.name, field.schema, self._value(field.schema)) for field in schema.fields]

        def read(tree: Any) -> Struct:
            best, most = None, -1
            for member in members:
                fits = _fit(member[1], tree)
                if fits > most:
                    best, most = member, fits
            if best is None:
                raise DataError(f"None of the alternatives of the schema takes {_NODES.get(type(tree))}")
            return Struct(schema, {best[0]: best[2](tree)})

        return read


_SURE = 1 << 30


def _fit(schema: Schema, tree: Any) -> int:  # noqa: PLR0911  one line a type
    kind = schema.type
    if kind == "struct":
        if isinstance(tree, dict):
            return len({field.name for field in schema.fields} & tree.keys())
        return max((_fit(field.schema, tree) for field in schema.fields), default=-1) if is_union(schema) else -1
    if isinstance(tree, bool):
        return _SURE if kind == "boolean" else -1
    if isinstance(tree, int):
        return _SURE if kind in INTEGER_RANGES or kind in ("float", "double") or schema.name == DECIMAL else -1
    if isinstance(tree, float | decimal.Decimal):
        return _SURE if kind in ("float", "double") or schema.name == DECIMAL else -1
    if isinstance(tree, str):
        return _SURE if kind == "string" else 0 if kind == "bytes" else -1
    if isinstance(tree, dict):
        return _SURE if kind == "map" and is_object_map(schema) else -1
    return _SURE if kind == "array" or (kind == "map" and not is_object_map(schema)) else -1


def _of(kind: type, tree: Any, schema: Schema) -> Any:
    if isinstance(tree, kind):
        return tree
    raise DataError(f"Expected {_NODES[kind]} for {java_type(schema)}, but found {_NODES.get(type(tree), '?')}")


def _whole(schema: Schema) -> Callable[[Any], int]:
    bound = INTEGER_RANGES[schema.type]

    def read(tree: Any) -> int:
        if tree.__class__ is not int:
            fraction = isinstance(tree, float | decimal.Decimal)
            if isinstance(tree, decimal.Decimal) and tree.adjusted() > _MAX_ADJUSTED:
                raise DataError(f"{tree} is too large for {java_type(schema)}")
            if not fraction or tree % 1:
                shown = tree if fraction else _NODES.get(type(tree), "?")
                raise DataError(f"Expected a whole number for {java_type(schema)}, but found {shown}")
            tree = int(tree)
        if not -bound <= tree < bound:
            raise DataError(f"{tree} is too large for {java_type(schema)}")
        return int(tree)

    return read


def _real(tree: Any, schema: Schema) -> float:
    if tree.__class__ is float:
        return float(tree)
    if isinstance(tree, int | decimal.Decimal) and not isinstance(tree, bool):
        try:
            return float(tree)
        except OverflowError:
            raise DataError(f"The number is too large for {java_type(schema)}") from None
    if tree in ("NaN", "Infinity", "-Infinity"):
        return float(tree)
    return float(_of(float, tree, schema))


def _decimals(scale: int) -> _Read:
    def read(tree: Any) -> decimal.Decimal:
        if isinstance(tree, str):
            return decimal_of(_bytes(tree), scale)
        if isinstance(tree, int | decimal.Decimal) and not isinstance(tree, bool):
            return decimal.Decimal(tree)
        raise DataError(f"A Decimal is a number or a text of its bytes, not {_NODES.get(type(tree), '?')}")

    return read


def _bytes(tree: Any) -> bytes:
    if not isinstance(tree, str):
        raise DataError(f"Bytes must be a text in base64, not {_NODES.get(type(tree), '?')}")
    try:
        return base64.b64decode(tree, validate=True)
    except ValueError:
        raise DataError("Bytes must be a text in base64, and this text is not") from None
