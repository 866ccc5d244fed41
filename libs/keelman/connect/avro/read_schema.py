"""Translates an Avro schema into a Connect schema, in Confluent's mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from keelman.connect.avro import names
from keelman.connect.avro.logical import reader
from keelman.connect.avro.names import AvroOptions
from keelman.connect.avro.parsed import LOGICAL_TYPE, Avro, Parsed, is_entry, member_field
from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, LOGICAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, cut
from keelman.connect.recurring_schema import Recurring
from keelman.connect.registry.sum_types import ANY_ENUM, ANY_UNION, ANY_UNION_NAME
from keelman.connect.schema import Field, Schema, Struct

_LOGICAL = {
    ("int", "date"): DATE_SCHEMA,
    ("int", "time-millis"): TIME_SCHEMA,
    ("long", "timestamp-millis"): TIMESTAMP_SCHEMA,
}
_PLAIN = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
}
_MISSING = object()


def read_schema(parsed: Parsed, options: AvroOptions, version: int | None = None) -> Schema:
    """Returns the Connect schema; `version` is the schema's version in the registry. Raises DataError."""
    try:
        return _Reader(parsed, options).schema(parsed.schema, version=version)
    except RecursionError:
        raise DataError("The Avro schema is nested too deeply") from None


@dataclass(slots=True)
class _Made:
    """A schema under construction: the equivalent of Java's SchemaBuilder."""

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    key: Schema | None = None
    value: Schema | None = None
    fields: tuple[Field, ...] = ()

    @classmethod
    def of(cls, schema: Schema) -> _Made:
        return cls(schema.type, name=schema.name, version=schema.version, parameters=dict(schema.parameters))

    def build(self) -> Schema:
        return Schema(
            self.type,
            self.optional,
            self.name,
            self.version,
            self.doc,
            tuple(self.parameters.items()),
            None,
            self.key,
            self.value,
            self.fields,
        )


@dataclass(slots=True)
class _Reader:
    """Translates one schema. `_within` has the records whose fields are being read."""

    parsed: Parsed
    options: AvroOptions
    _within: dict[str, list[Recurring]] = field(default_factory=dict)
    _unions: int = 0

    def schema(
        self,
        avro: Avro,
        *,
        optional: bool = False,
        default: Any = _MISSING,
        doc: str | None = None,
        version: int | None = None,
    ) -> Schema:
        """Translates a type; `default` and `doc` are those of the field with this type."""
        node = self.parsed.resolved(avro)
        if isinstance(node, list):
            return self._union(node, default, doc)
        kind, own_name = str(node["type"]), self._name(node)
        if kind == "record" and node["name"] in self._within:
            again = Recurring("struct", optional, own_name, self._version(node, version))
            self._within[node["name"]].append(again)
            return again
        builder = self._base(kind, node, own_name, version)
        self._doc(builder, node, doc)
        own_version = self._version(node, version)
        if own_version is not None:
            if builder.version not in (None, own_version):
                raise DataError(
                    f"Mismatched versions: version already added to SchemaBuilder ({builder.version}) differs from "
                    f"version in source schema ({own_version})"
                )
            builder.version = own_version
        self._parameters(builder, node)
        connect_default = node.get(names.DEFAULT, _MISSING)
        from_field = default is not _MISSING
        if not from_field:
            default = connect_default
        elif (
            connect_default is _MISSING and self.options.connect_meta_data and not self.options.discard_type_doc_default
        ):
            builder.parameters[names.FIELD_DEFAULT] = "true"
        if own_name is not None and not own_name.startswith(f"{names.NAMESPACE}.{names.DEFAULT_NAME}"):
            builder.name = builder.name or own_name
        builder.optional = optional
        built = builder.build()
        if default is not _MISSING and default is not None:
            built = replace(built, default=read_default(self.parsed, built, node, default))
        if kind == "record":
            for recurring in self._within.pop(node["name"]):
                recurring.close(built)
        return built

    def _base(self, kind: str, node: Mapping[str, Any], own_name: str | None, version: int | None) -> _Made:
        logical = node.get(LOGICAL_TYPE)
        if kind in ("bytes", "fixed"):
            return self._bytes(kind, node, logical)
        if kind in _PLAIN:
            return self._plain(kind, node, logical)
        if kind == "array":
            return self._array(node)
        if kind == "map":
            return _Made("map", key=Schema("string"), value=self.schema(node["values"]))
        if kind == "record":
            return self._record(node, own_name, version)
        if kind == "enum":
            return self._enum(node)
        if kind == "null":
            raise DataError("Standalone null schemas are not supported by this converter")
        raise DataError(f"Couldn't translate unsupported schema type {kind}.")

    def _bytes(self, kind: str, node: Mapping[str, Any], logical: Any) -> _Made:
        builder = _Made("bytes")
        if logical == "decimal":
            scale = node.get("scale")
            builder.name, builder.version = DECIMAL, 1
            builder.parameters["scale"] = str(scale) if isinstance(scale, int) else "0"
            precision = node.get("precision")
            if precision is not None:
                if not isinstance(precision, int):
                    raise DataError("precision property must be a JSON Integer.")
                if precision != names.DEFAULT_PRECISION:
                    builder.parameters[names.PRECISION] = str(precision)
        if kind == "fixed":
            builder.parameters[names.FIXED_SIZE] = str(node["size"])
        return builder

    def _plain(self, kind: str, node: Mapping[str, Any], logical: Any) -> _Made:
        schema = _LOGICAL.get((kind, logical))
        if schema is not None:
            return _Made.of(schema)
        if kind != "int" or logical is not None or names.TYPE not in node:
            return _Made(_PLAIN[kind])
        if node[names.TYPE] not in ("int8", "int16"):
            raise DataError("Connect type annotation for Avro int field is null")
        return _Made(node[names.TYPE])

    def _array(self, node: Mapping[str, Any]) -> _Made:
        entry = self.parsed.resolved(node["items"])
        if isinstance(entry, Mapping) and is_entry(entry):
            fields = {field["name"]: field["type"] for field in entry["fields"]}
            if fields.keys() != {"key", "value"}:
                raise DataError(
                    "Found map encoded as array of key-value pairs, but array elements do not match the expected "
                    "format."
                )
            return _Made("map", key=self.schema(fields["key"]), value=self.schema(fields["value"]))
        return _Made("array", value=self.schema(node["items"]))

    def _record(self, node: Mapping[str, Any], own_name: str | None, version: int | None) -> _Made:
        builder, with_docs = (
            _Made("struct"),
            self.options.connect_meta_data and not self.options.discard_type_doc_default,
        )
        if with_docs and node.get("doc") is not None:
            builder.parameters[names.RECORD_DOC] = node["doc"]
        self._within[node["name"]] = []
        fields = []
        for entry in node["fields"]:
            if with_docs and entry.get("doc") is not None:
                builder.parameters[names.FIELD_DOC + entry["name"]] = entry["doc"]
            schema = self.schema(entry["type"], default=entry.get("default", _MISSING), doc=entry.get("doc"))
            fields.append(Field(entry["name"], schema))
        builder.fields = tuple(fields)
        return builder

    def _enum(self, node: Mapping[str, Any]) -> _Made:
        builder, alone, simple = _Made("string"), self.options.discard_type_doc_default, node["name"].rpartition(".")[2]
        if self.options.connect_meta_data:
            if node.get("doc") is not None:
                builder.parameters[names.ENUM_DOC_ALONE if alone else names.ENUM_DOC + simple] = node["doc"]
            if not alone and node.get("default") is not None:
                builder.parameters[names.ENUM_DEFAULT + simple] = node["default"]
        sums = self.options.generalized_sum_type_support
        parameter = ANY_ENUM if sums else names.ENUM
        builder.parameters[parameter] = node["name"]
        for place, symbol in enumerate(node["symbols"]):
            builder.parameters[f"{parameter}.{symbol}"] = str(place) if sums else symbol
        return builder

    def _union(self, members: list[Any], default: Any, doc: str | None) -> Schema:
        real = [member for member in members if self.parsed.resolved(member) != {"type": "null"}]
        if len(members) == 1 and self.options.flatten_singleton_unions:
            return self.schema(members[0], doc=doc)
        if len(members) == 2 and len(real) == 1:
            return self.schema(real[0], optional=True, doc=doc)
        builder = _Made("struct", name=names.UNION, optional=len(real) < len(members))
        if self.options.generalized_sum_type_support:
            builder.name = f"{ANY_UNION_NAME}{self._unions}"
            builder.parameters[ANY_UNION] = builder.name
            self._unions += 1
        fields: dict[str, Schema] = {}
        for place, member in enumerate(members):
            if member in real:
                name = member_field(self.parsed, member, self.options, place)
                if name in fields:
                    raise DataError("Multiple union schemas map to the Connect union field name")
                fields[name] = self.schema(member, optional=True)
        builder.fields = tuple(Field(name, field) for name, field in fields.items())
        if default is not _MISSING and self.options.connect_meta_data and not self.options.discard_type_doc_default:
            builder.parameters[names.FIELD_DEFAULT] = "true"
        plain = builder.build()
        if default is _MISSING or default is None or not builder.fields:
            return plain
        first, node = builder.fields[0], mapping_of(self.parsed, members[0])
        return replace(
            plain, default=Struct(plain, {first.name: read_default(self.parsed, first.schema, node, default)})
        )

    def _name(self, node: Mapping[str, Any]) -> str | None:
        name = node.get(names.NAME)
        if name is not None:
            if not isinstance(name, str):
                raise DataError(f"Invalid schema name: {name}")
            return name
        return node["name"] if node["type"] in names.NAMED else None

    def _version(self, node: Mapping[str, Any], version: int | None) -> int | None:
        own = node.get(names.VERSION)
        if own is None:
            return version
        if not isinstance(own, int):
            raise DataError(f"Invalid Connect version found: {own}")
        return own if own >= 0 else None

    def _doc(self, builder: _Made, node: Mapping[str, Any], doc: str | None) -> None:
        if self.options.discard_type_doc_default:
            builder.doc = doc or node.get("doc") or node.get(names.DOC)
            if self.options.connect_meta_data and node.get("doc") is not None:
                builder.parameters[names.RECORD_DOC_ALONE] = node["doc"]
        elif self.options.connect_meta_data:
            builder.doc = node.get(names.DOC)

    def _parameters(self, builder: _Made, node: Mapping[str, Any]) -> None:
        parameters = node.get(names.PARAMETERS)
        if self.options.connect_meta_data and parameters is not None:
            if not isinstance(parameters, Mapping):
                raise DataError(f"Expected JSON object for schema parameters but found: {parameters}")
            for key, value in parameters.items():
                if not isinstance(value, str):
                    raise DataError(f"Expected schema parameter values to be strings but found: {value}")
                builder.parameters[key] = value
        builder.parameters |= {key: str(value) for key, value in node.items() if key.startswith("avro")}


def read_default(parsed: Parsed, schema: Schema, node: Mapping[str, Any], value: Any) -> Any:
    """Returns a default's JSON as Connect's value; None if it does not fit, as in Connect."""
    try:
        plain = _plain(parsed, schema, node, value)
        return reader(schema)(plain) if schema.name in LOGICAL else plain
    except (TypeError, ValueError, KeyError, AttributeError, DataError):
        return None


def _plain(parsed: Parsed, schema: Schema, node: Mapping[str, Any], value: Any) -> Any:  # noqa: PLR0911
    if value is None:
        return None
    kind = schema.type
    if kind in INTEGERS:
        return cut(value, INTEGERS[kind][1])
    if kind in ("float", "double"):
        return Float32(value) if kind == "float" else float(value)
    if kind == "boolean":
        return value is True
    if kind == "bytes":
        return str(value).encode("latin-1")
    if kind == "array" and schema.value is not None:
        inner = mapping_of(parsed, node["items"])
        return [read_default(parsed, schema.value, inner, item) for item in value]
    if kind == "map" and schema.value is not None:
        if "values" in node:
            inner = mapping_of(parsed, node["values"])
            return {key: read_default(parsed, schema.value, inner, value) for key, value in value.items()}
        return None
    if kind == "struct":
        inner_of = {field["name"]: field["type"] for field in node["fields"]}
        return Struct(
            schema,
            {
                field.name: read_default(
                    parsed, field.schema, mapping_of(parsed, _only(parsed, inner_of[field.name])), value.get(field.name)
                )
                for field in schema.fields
            },
        )
    return str(value)


def _only(parsed: Parsed, avro: Avro) -> Avro:
    """Returns the single non-null member of an optional's union."""
    node = parsed.resolved(avro)
    if isinstance(node, list):
        return next((member for member in node if member != "null"), "null")
    return avro


def mapping_of(parsed: Parsed, avro: Avro) -> Mapping[str, Any]:
    """Returns a schema's node; for a union a node with nothing but that type."""
    node = parsed.resolved(avro)
    return node if isinstance(node, Mapping) else {"type": "union"}
