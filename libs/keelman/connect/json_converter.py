"""JsonConverter: JSON with or without Connect's schema envelope, in Connect's exact form."""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Mapping
from typing import Any

import orjson

from keelman.connect.config_def import ConfigDef, ConfigKey, Importance, Type, one_of_any_case
from keelman.connect.converters import Converter
from keelman.connect.errors import DataError
from keelman.connect.java import json_text
from keelman.connect.records import Column
from keelman.connect.schema import TYPES, Field, Schema, Struct, checked

_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_UNREADABLE = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_DATA = "org.apache.kafka.connect.data."
_DECIMAL, _DATE, _TIME, _TIMESTAMP = (_DATA + name for name in ("Decimal", "Date", "Time", "Timestamp"))
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_DAY = datetime.timedelta(days=1)


class JsonConverter(Converter):
    """Reads and writes JSON; `schemas.enable` (default true) wraps each value with its schema.

    Logical types: Decimal is decimal.Decimal; Date, Time and Timestamp are datetimes in UTC.
    """

    names = ("org.apache.kafka.connect.json.JsonConverter", "JsonConverter", "Json")

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`schemas.enable`, `schemas.cache.size`, `decimal.format`, `replace.null.with.default`."""
        low, high = Importance.LOW, Importance.HIGH
        form = one_of_any_case("BASE64", "NUMERIC")
        return ConfigDef(
            ConfigKey("schemas.enable", Type.BOOLEAN, True, high, "Keep each value's schema beside it."),
            ConfigKey("schemas.cache.size", Type.INT, 1000, high, "Schemas kept translated."),
            ConfigKey("decimal.format", Type.STRING, "BASE64", low, "How decimals are written.", form),
            ConfigKey("replace.null.with.default", Type.BOOLEAN, True, low, "Write a field's default for null."),
        )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._schemas: bool = self.config["schemas.enable"]
        self._numeric = self.config["decimal.format"].upper() == "NUMERIC"
        self._defaults: bool = self.config["replace.null.with.default"]
        self._texts: dict[Schema, str] = {}
        self._parsed: dict[bytes, Schema | None] = {}

    def from_connect(self, column: Column) -> list[bytes | None]:
        """JSON in UTF-8; a null without a schema is a null record."""
        column = column.texts()
        if column.schemas is None:
            schema = column.schema
            return [self._write(schema, value) for value in column.values]
        return [self._write(schema, value) for schema, value in zip(column.schemas, column.values, strict=True)]

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Values, each with its schema when schemas are enabled. Raises DataError for what is not such JSON."""
        if not self._schemas:
            return Column([None if p is None else _loads(p) for p in payloads])
        values, schemas = [], []
        for payload in payloads:
            schema, value = (None, None) if payload is None else self._open(_loads(payload))
            values.append(value)
            schemas.append(schema)
        return Column(values, schemas=schemas)

    def _write(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        payload = json_text(self._plain(schema, value))
        if not self._schemas:
            return payload.encode()
        text = "null" if schema is None else self._texts.get(schema)
        if text is None:
            assert schema is not None
            text = json_text(schema_json(schema))
            if len(self._texts) >= self.config["schemas.cache.size"]:
                self._texts.clear()
            self._texts[schema] = text
        return f'{{"schema":{text},"payload":{payload}}}'.encode()

    def _plain(self, schema: Schema | None, value: Any) -> Any:  # noqa: PLR0911  one line a type
        """The value as JSON's own types."""
        if schema is None:
            if isinstance(value, Struct):
                schema = value.schema
            elif isinstance(value, dict):
                if all(isinstance(k, str) for k in value):
                    return {k: self._plain(None, v) for k, v in value.items()}
                return [[self._plain(None, k), self._plain(None, v)] for k, v in value.items()]
            elif isinstance(value, list | tuple):
                return [self._plain(None, v) for v in value]
            else:
                return value
        if value is None:
            if schema.default is not None and self._defaults:
                return self._plain(schema, schema.default)
            if schema.optional:
                return None
            raise DataError("Conversion error: null value for field that is required and has no default value")
        return self._by_schema(schema, value)

    def _by_schema(self, schema: Schema, value: Any) -> Any:
        if schema.name in _LOGICAL and not isinstance(value, bytes | int):
            value = _from_logical(schema, value)
            if isinstance(value, decimal.Decimal):
                return value if self._numeric else _unscaled(value)
        checked(schema, value)
        if schema.type == "struct":
            if value.schema != schema:
                raise DataError("Mismatching schema.")
            return {f.name: self._plain(f.schema, value.values.get(f.name)) for f in schema.fields}
        if schema.type == "array":
            return [self._plain(schema.value, item) for item in value]
        if schema.type == "map":
            if schema.key is None or schema.key.type == "string":
                return {k: self._plain(schema.value, v) for k, v in value.items()}
            return [[self._plain(schema.key, k), self._plain(schema.value, v)] for k, v in value.items()]
        return value

    def _open(self, tree: Any) -> tuple[Schema | None, Any]:
        if not isinstance(tree, dict) or tree.keys() != {"schema", "payload"}:
            raise DataError(_ENVELOPE)
        raw = orjson.dumps(tree["schema"])
        if raw not in self._parsed:
            if len(self._parsed) >= self.config["schemas.cache.size"]:
                self._parsed.clear()
            self._parsed[raw] = parse_schema(tree["schema"])
        schema = self._parsed[raw]
        return schema, self._read(schema, tree["payload"])

    def _read(self, schema: Schema | None, value: Any) -> Any:
        if schema is None:
            return value
        if value is None:
            if schema.default is not None and self._defaults:
                return schema.default
            if schema.optional:
                return None
            raise DataError(f"Invalid null value for required {schema.type.upper()} field")
        return _to_logical(schema, self._shape(schema, value))

    def _shape(self, schema: Schema, value: Any) -> Any:  # noqa: PLR0911  one line a type
        kind = schema.type
        if kind == "struct":
            _expect(isinstance(value, dict), "Structs should be encoded as JSON objects, but found ", value)
            return Struct(schema, {f.name: self._read(f.schema, value.get(f.name)) for f in schema.fields})
        if kind == "array":
            _expect(isinstance(value, list), "Arrays should be encoded as JSON arrays, but found ", value)
            return [self._read(schema.value, item) for item in value]
        if kind == "map":
            if schema.key is None or schema.key.type == "string":
                text = "Maps with string fields should be encoded as JSON objects, but found "
                _expect(isinstance(value, dict), text, value)
                return {k: self._read(schema.value, v) for k, v in value.items()}
            text = "Maps with non-string fields should be encoded as JSON array of tuples, but found "
            _expect(isinstance(value, list), text, value)
            for pair in value:
                _expect(isinstance(pair, list) and len(pair) == 2, "Found invalid map entry: ", pair)
            return {self._read(schema.key, k): self._read(schema.value, v) for k, v in value}
        if kind == "bytes":
            if schema.name == _DECIMAL and isinstance(value, int | float):
                return decimal.Decimal(str(value))
            try:
                return base64.b64decode(value, validate=True)
            except (TypeError, ValueError):
                raise DataError("Invalid bytes field") from None
        if kind in ("float", "double") and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        return checked(schema, value)


def schema_json(schema: Schema, field: str | None = None) -> dict[str, Any]:
    """A schema as JSON, its keys in Connect's order."""
    tree: dict[str, Any] = {"type": schema.type}
    if schema.type == "array" and schema.value is not None:
        tree["items"] = schema_json(schema.value)
    elif schema.type == "map" and schema.key is not None and schema.value is not None:
        tree["keys"], tree["values"] = schema_json(schema.key), schema_json(schema.value)
    elif schema.type == "struct":
        tree["fields"] = [schema_json(f.schema, f.name) for f in schema.fields]
    tree["optional"] = schema.optional
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            tree[name] = getattr(schema, name)
    if schema.parameters:
        tree["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        tree["default"] = JsonConverter({})._plain(_without_default(schema), schema.default)
    if field is not None:
        tree["field"] = field
    return tree


def parse_schema(tree: Any) -> Schema | None:
    """A schema from its JSON; JSON null is no schema. Raises DataError."""
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
        version=tree.get("version"),
        doc=tree.get("doc"),
        parameters=tuple((tree.get("parameters") or {}).items()),
        key=key,
        value=value,
        fields=fields,
    )
    if tree.get("default") is None:
        return schema
    default = JsonConverter({})._read(schema, tree["default"])
    return Schema(**{**{n: getattr(schema, n) for n in Schema.__slots__}, "default": default})


def _field(member: Any) -> Field:
    schema = parse_schema(member)
    name = member.get("field") if isinstance(member, dict) else None
    if schema is None or not isinstance(name, str):
        raise DataError("Struct schema's field name not specified properly")
    return Field(name, schema)


def _without_default(schema: Schema) -> Schema:
    return Schema(**{**{n: getattr(schema, n) for n in Schema.__slots__}, "default": None})


def _loads(payload: bytes) -> Any:
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise DataError(_UNREADABLE + str(error)) from None


def _expect(holds: bool, text: str, value: Any) -> None:
    if not holds:
        raise DataError(text if value is None else text + _NODES.get(type(value), "NULL"))


def _unscaled(value: decimal.Decimal) -> bytes:
    sign, digits, _ = value.as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _from_logical(schema: Schema, value: Any) -> Any:
    if schema.name == _DECIMAL and isinstance(value, decimal.Decimal):
        scale = int(dict(schema.parameters).get("scale", "0"))
        if -int(value.as_tuple().exponent) != scale:
            raise DataError("Decimal value has mismatching scale for given Decimal schema")
        return value
    if schema.name in (_DATE, _TIME, _TIMESTAMP) and isinstance(value, datetime.datetime):
        since = value - _EPOCH
        return since // _DAY if schema.name == _DATE else since // _MILLISECOND
    raise DataError(f"Invalid type for {str(schema.name).rpartition('.')[2]}: {type(value).__name__}")


def _to_logical(schema: Schema, value: Any) -> Any:
    if schema.name == _DECIMAL and isinstance(value, bytes):
        scale = int(dict(schema.parameters).get("scale", "0"))
        return decimal.Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale)
    if schema.name == _DATE:
        return _EPOCH + value * _DAY
    if schema.name in (_TIME, _TIMESTAMP):
        return _EPOCH + value * _MILLISECOND
    return value


_LOGICAL = frozenset({_DECIMAL, _DATE, _TIME, _TIMESTAMP})
_NODES: dict[type, str] = {
    dict: "OBJECT",
    list: "ARRAY",
    str: "STRING",
    bool: "BOOLEAN",
    int: "NUMBER",
    float: "NUMBER",
}
