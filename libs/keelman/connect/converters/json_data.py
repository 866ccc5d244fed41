"""Connect's data and schemas as JSON trees, in Connect's exact form, and back."""

from __future__ import annotations

import base64
import decimal
import re
from functools import lru_cache
from types import NoneType
from typing import Any

import orjson

from keelman.connect.converters.logical import (
    DATE,
    DECIMAL,
    LOGICAL,
    TIME,
    TIMESTAMP,
    day,
    decimal_of,
    number_of,
    scale_of,
    scaled,
    time_of_day,
    unscaled,
)
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, Int8, Int16, Int32, cut, java_class
from keelman.connect.java.text import hash_order
from keelman.connect.schema import TYPES, Field, Schema, Struct, checked, java_type
from keelman.connect.times import TIMES, moment


class Missing:
    """The value of an empty text, which holds no JSON. Under a schema it is not null, but has no legal type."""


MISSING = Missing()


class Plain:
    """Converts Connect's data to JSON's own types. Logical types are decimal.Decimal and datetimes in UTC."""

    def __init__(self, *, numeric: bool = False, defaults: bool = True) -> None:
        """`numeric`: decimals are numbers, not texts of their bytes; `defaults`: null becomes a field's default."""
        self._numeric, self._defaults = numeric, defaults

    def tree(self, schema: Schema | None, value: Any) -> Any:
        """Returns the tree of a value. Raises DataError."""
        if schema is None:
            if isinstance(value, Struct):
                schema = value.schema
            else:
                return self._bare(value)
        if value is None:
            if schema.default is not None and self._defaults:
                return self.tree(schema, schema.default)
            if schema.optional:
                return None
            raise DataError("Conversion error: null value for field that is required and has no default value")
        return self._by_schema(schema, value)

    def _bare(self, value: Any) -> Any:
        if isinstance(value, dict):
            if all(isinstance(key, str) for key in value):
                return {key: self.tree(None, value[key]) for key in in_order(tuple(value))}
            return [[self.tree(None, key), self.tree(None, item)] for key, item in value.items()]
        if isinstance(value, list | tuple):
            return [self.tree(None, item) for item in value]
        if isinstance(value, (*TIMES, decimal.Decimal)):
            raise DataError(f"Java class class {java_class(value)} does not have corresponding schema type.")
        return value

    def _by_schema(self, schema: Schema, value: Any) -> Any:  # noqa: PLR0911  one line a type
        if schema.name in LOGICAL and not isinstance(value, bytes | int):
            value = _from_logical(schema, value)
            if isinstance(value, decimal.Decimal):
                return value if self._numeric else unscaled(value)
        checked(schema, value)
        if schema.type == "struct":
            if value.schema != schema:
                raise DataError("Mismatching schema.")
            return {f.name: self.tree(f.schema, value.values.get(f.name)) for f in schema.fields}
        if schema.type == "array":
            return [self.tree(schema.value, item) for item in value]
        if schema.type == "map":
            if schema.key is None or schema.key.type == "string":
                return {key: self.tree(schema.value, value[key]) for key in in_order(tuple(value))}
            return [[self.tree(schema.key, k), self.tree(schema.value, v)] for k, v in value.items()]
        if schema.type == "float":
            return Float32(value)
        return value


def read(schema: Schema | None, tree: Any, *, defaults: bool = True) -> Any:
    """Returns Connect's data for a JSON tree, whose numbers may be Decimals. Raises DataError."""
    if schema is None:
        return tree
    if tree is None:
        if schema.default is not None and defaults:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {java_type(schema)} field")
    if schema.name in LOGICAL:
        return _logical(schema, schema.name, tree)
    return _shape(schema, tree, defaults=defaults)


def cut_numbers(tree: Any) -> Any:
    """Returns the tree with whole numbers cut to 64 bits, as they are without a schema."""
    if isinstance(tree, dict):
        return {key: cut_numbers(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [cut_numbers(node) for node in tree]
    if isinstance(tree, int) and not isinstance(tree, bool) and not -_LONG <= tree < _LONG:
        return cut(tree, 64)
    return tree


_INT, _LONG = 1 << 31, 1 << 63


def _shape(schema: Schema, tree: Any, *, defaults: bool) -> Any:  # noqa: PLR0911  one line a type
    kind = schema.type
    if kind == "struct":
        _expect(isinstance(tree, dict), "Structs should be encoded as JSON objects, but found ", tree)
        return Struct(schema, {f.name: read(f.schema, tree.get(f.name), defaults=defaults) for f in schema.fields})
    if kind == "array":
        # Connect iterates over any container.
        items = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
        return [read(schema.value, item, defaults=defaults) for item in items]
    if kind == "map":
        return _map(schema, tree, defaults=defaults)
    if kind == "bytes":
        if not isinstance(tree, str):
            return None
        try:
            return base64_bytes(tree)
        except ValueError:
            raise DataError("Invalid bytes field") from None
    number = tree if isinstance(tree, int | float | decimal.Decimal) and not isinstance(tree, bool) else 0
    if kind in INTEGERS:
        return cut(_whole(number), INTEGERS[kind][1])
    if kind in ("float", "double"):
        return Float32(number) if kind == "float" else float(number)
    if kind == "boolean":
        return tree is True
    return tree if isinstance(tree, str) else None


def _whole(number: int | float | decimal.Decimal) -> int:
    """Returns the number without its fraction; for large ones the bits that fit 64. Raises CareError for a float that
    may differ from the number in the text."""
    if isinstance(number, float) and abs(number) >= _INEXACT:
        raise CareError
    # Beyond this exponent the lower 64 bits are 0.
    return 0 if isinstance(number, decimal.Decimal) and int(number.as_tuple().exponent) >= 64 else int(number)


def base64_bytes(text: str) -> bytes:
    """Decodes base64, which may be several padded pieces with spaces between. Raises ValueError."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        if _PIECES.fullmatch(text) is None:
            raise
        return b"".join(map(base64.b64decode, _PIECE.findall(text)))


_INEXACT = float(1 << 53)
_PIECE = re.compile(r"[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=")
_PIECES = re.compile(rf"(?:[\x00-\x20]*(?:{_PIECE.pattern}))*[\x00-\x20]*")


def _map(schema: Schema, tree: Any, *, defaults: bool) -> Any:
    if schema.key is None or schema.key.type == "string":
        text = "Maps with string fields should be encoded as JSON objects, but found "
        _expect(isinstance(tree, dict), text, tree)
        return {k: read(schema.value, v, defaults=defaults) for k, v in tree.items()}
    _expect(
        isinstance(tree, list),
        "Maps with non-string fields should be encoded as JSON array of tuples, but found ",
        tree,
    )
    for pair in tree:
        _expect(isinstance(pair, list), "Found invalid map entry instead of array tuple: ", pair)
        _expect(len(pair) == 2, f"Found invalid map entry, expected length 2 but found :{len(pair)}", None)
    return {read(schema.key, k, defaults=defaults): read(schema.value, v, defaults=defaults) for k, v in tree}


def has_decimals(schema: Schema | None) -> bool:
    """Whether numbers under the schema may be decimals, whose digits count."""
    if schema is None:
        return False
    inner = (schema.key, schema.value, *(field.schema for field in schema.fields))
    return schema.name == DECIMAL or any(has_decimals(part) for part in inner)


def schema_json(schema: Schema, field: str | None = None) -> dict[str, Any]:
    """Returns a schema as JSON, its keys in Connect's order."""
    tree: dict[str, Any] = {"type": schema.type}
    if schema.type == "array":
        tree["items"] = schema.value and schema_json(schema.value)
    elif schema.type == "map":
        tree["keys"], tree["values"] = (
            schema.key and schema_json(schema.key),
            schema.value and schema_json(schema.value),
        )
    elif schema.type == "struct":
        tree["fields"] = [schema_json(f.schema, f.name) for f in schema.fields]
    tree["optional"] = schema.optional
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            tree[name] = getattr(schema, name)
    if schema.parameters:
        tree["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        tree["default"] = Plain().tree(_without_default(schema), schema.default)
    if field is not None:
        tree["field"] = field
    return tree


def parse_schema(tree: Any) -> Schema | None:
    """Parses a schema from its JSON; JSON null is no schema. Raises DataError."""
    if tree is None:
        return None
    if not isinstance(tree, dict) or not isinstance(tree.get("type"), str):
        raise DataError("Schema must contain 'type' field")
    kind = tree["type"]
    if kind not in TYPES:
        raise DataError(f"Unknown schema type: {kind}")
    key = value = None
    fields: tuple[Field, ...] = ()
    if kind == "array":
        value = parse_schema(tree.get("items"))
        _expect(value is not None, "Array schema did not specify the element type", None)
    elif kind == "map":
        key, value = parse_schema(tree.get("keys")), parse_schema(tree.get("values"))
        _expect(key is not None, "Map schema did not specify the key type", None)
        _expect(value is not None, "Map schema did not specify the value type", None)
    elif kind == "struct":
        _expect(isinstance(tree.get("fields"), list), 'Struct schema\'s "fields" argument is not an array.', None)
        fields = tuple(_field(member) for member in tree["fields"])
    schema = Schema(
        kind,
        optional=tree.get("optional") is True,
        name=tree.get("name"),
        version=version if isinstance(version := tree.get("version"), int) else None,
        doc=tree.get("doc"),
        parameters=tuple((tree.get("parameters") or {}).items()),
        key=key,
        value=value,
        fields=fields,
    )
    if tree.get("default") is None:
        return schema
    default = read(schema, tree["default"])
    return Schema(**{**{n: getattr(schema, n) for n in Schema.__slots__}, "default": default})


def _field(member: Any) -> Field:
    schema = parse_schema(member)
    name = member.get("field") if isinstance(member, dict) else None
    if schema is None or not isinstance(name, str):
        raise DataError("Struct schema's field name not specified properly")
    return Field(name, schema)


def _without_default(schema: Schema) -> Schema:
    return Schema(**{**{n: getattr(schema, n) for n in Schema.__slots__}, "default": None})


def _expect(holds: bool, text: str, value: Any) -> None:
    if not holds:
        raise DataError(text if value is None else text + _NODES.get(type(value), "NULL"))


def _from_logical(schema: Schema, value: Any) -> Any:
    if schema.name == DECIMAL:
        return scaled(value, scale_of(schema))
    if schema.name in (DATE, TIME, TIMESTAMP) and isinstance(value, TIMES):
        return number_of(value, schema.name)
    raise DataError(f"Invalid type for {str(schema.name).rpartition('.')[2]}: {type(value).__name__}")


def _logical(schema: Schema, name: str, tree: Any) -> Any:
    """Returns the value of a logical type, whose schema may have an unusual type. Raises DataError."""
    whole = isinstance(tree, int) and not isinstance(tree, bool)
    text = f"Invalid type for {name.rpartition('.')[2]}, underlying representation should be "
    if name == TIMESTAMP:
        _expect(whole, f"{text}integral but was ", tree)
        return moment(cut(tree, 64))
    if name in (DATE, TIME):
        _expect(whole and -_INT <= tree < _INT, f"{text}integer but was ", tree)
        return day(tree) if name == DATE else time_of_day(tree)
    if isinstance(tree, str):
        try:
            return decimal_of(base64_bytes(tree), scale_of(schema))
        except (ValueError, DataError):
            raise DataError("Invalid bytes for Decimal field") from None
    number = isinstance(tree, int | float | decimal.Decimal) and not isinstance(tree, bool)
    _expect(number, f"{text}numeric or bytes but was ", tree)
    return decimal.Decimal(str(tree) if isinstance(tree, float) else tree)


_NODES: dict[type, str] = {
    dict: "OBJECT",
    list: "ARRAY",
    str: "STRING",
    bool: "BOOLEAN",
    int: "NUMBER",
    float: "NUMBER",
    decimal.Decimal: "NUMBER",
    Missing: "MISSING",
}


@lru_cache(maxsize=1000)
def in_order(keys: tuple[str, ...]) -> list[str]:
    """Returns the keys in a HashMap's order, in which Connect writes maps. Raises CareError for non-string keys."""
    if any(not isinstance(key, str) for key in keys):
        raise CareError
    return hash_order(keys)


def quick_json(value: Any) -> bytes | None:
    """Returns the JSON of simple data without a schema; None for numbers that Java writes differently, for values
    other than texts and numbers, and for characters that are escaped."""
    try:
        written = orjson.dumps(_plain_tree(value))
    except (CareError, TypeError, orjson.JSONEncodeError):
        return None
    return None if _ESCAPED.search(written) else written


class CareError(Exception):
    """Some value must be written with care."""


def _plain_tree(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        return {key: _plain_tree(value[key]) for key in in_order(tuple(value))}
    if kind is list:
        return [_plain_tree(item) for item in value]
    if kind is float and (1e-3 <= value < 1e7 or -1e7 < value <= -1e-3):
        return value
    raise CareError


_AS_THEY_ARE = {str, int, bool, NoneType, Int8, Int16, Int32}
_ESCAPED = re.compile(rb"\\u|[\xf0-\xff]")
