"""Prepares Connect's values for fastavro to write, by functions that are created once for each pair of schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.avro import names
from keelman.connect.avro.logical import writer
from keelman.connect.avro.names import AVRO_TYPES, AvroOptions, is_union
from keelman.connect.avro.parsed import Avro, Parsed, member_field
from keelman.connect.converters.json_data import in_order
from keelman.connect.converters.logical import LOGICAL
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32, Int8, Int16, Int32, java_class
from keelman.connect.recurring_schema import Recurring
from keelman.connect.schema import INTEGER_RANGES, Schema, Struct, type_name

Write = Callable[[Any], Any]
_INTS: tuple[tuple[type, str], ...] = ((Int8, "int"), (Int16, "int"), (Int32, "int"), (int, "long"))


def write_function(schema: Schema, parsed: Parsed, options: AvroOptions) -> Write:
    """Returns a function from Connect's values to the library's, for an Avro schema made from Connect's or compatible.

    The function raises DataError, as this does if the two schemas do not fit.
    """
    try:
        return _Functions(parsed, options).of(schema, parsed.schema)
    except RecursionError:
        raise DataError("The schema is nested too deeply for Avro") from None


def write_anything(value: Any) -> Any:  # noqa: PLR0911  one line a type
    """Returns the library's form of a value without a schema, in the record Anything. Raises DataError."""
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolean": ("boolean", value)}
    if isinstance(value, int):
        kind = next(name for int_class, name in _INTS if isinstance(value, int_class))
        return {kind: (kind, _integer("int64" if kind == "long" else "int32")(value))}
    if isinstance(value, float):
        kind = "float" if isinstance(value, Float32) else "double"
        return {kind: (kind, value)}
    if isinstance(value, str):
        return {"string": ("string", value)}
    if isinstance(value, bytes):
        return {"bytes": ("bytes", value)}
    if isinstance(value, list | tuple):
        return {"array": ("array", [write_anything(item) for item in value])}
    if isinstance(value, Mapping):
        keys = in_order(tuple(value)) if all(isinstance(key, str) for key in value) else value
        entries = [{"key": write_anything(key), "value": write_anything(value[key])} for key in keys]
        return {"map": ("array", entries)}
    raise DataError(f"Unknown Java type for schemaless data: class {java_class(value)}")


@dataclass(slots=True)
class _Functions:
    parsed: Parsed
    options: AvroOptions
    _records: dict[str, Write] = field(default_factory=dict)
    """The enclosing records' functions, for records that contain themselves."""

    def of(self, schema: Schema, avro: Avro) -> Write:
        """Returns a function for any value, including unions."""
        node = self.parsed.resolved(avro)
        if is_union(schema):
            return self._union(schema, node)
        if isinstance(node, Mapping):
            return _not_null(self.base(schema, node))
        member = self._chosen(schema, node)
        tag, base, nullable = _tag(member), self.base(schema, member), "null" in node and schema.optional

        def write(value: Any) -> Any:
            if value is None:
                if nullable:
                    return None
                raise _null()
            return tag, base(value)

        return write

    def _chosen(self, schema: Schema, members: list[Any]) -> Mapping[str, Any]:
        """Returns the union's member for such a value: the only member, else the first of the type."""
        nodes = [self.parsed.resolved(member) for member in members]
        real = [node for node in nodes if isinstance(node, Mapping) and node["type"] != "null"]
        avro_type = {"struct": "record"}.get(schema.type) or AVRO_TYPES.get(schema.type)
        matches = [node for node in real if node["type"] == avro_type]
        named = [node for node in matches if node.get("name") == schema.name]
        if not real:
            raise DataError(f"The Avro schema has no place for a value of type {type_name(schema.type)}")
        return (real if len(real) == 1 else named or matches or real)[0]

    def base(self, schema: Schema, node: Mapping[str, Any]) -> Write:  # noqa: PLR0911  one line a type
        """Returns a function for non-null values."""
        kind = schema.type
        if schema.name in LOGICAL:
            return writer(schema)
        if kind in INTEGER_RANGES:
            return _integer(kind)
        if kind in ("float", "double"):
            return _real(kind)
        if kind == "struct":
            return self._struct(schema, node)
        if kind == "array" and schema.value is not None and "items" in node:
            return _list(self.of(schema.value, node["items"]))
        if kind == "map" and schema.key is not None and schema.value is not None:
            return self._map(schema.key, schema.value, node)
        if kind == "bytes":
            return _bytes(node.get("size"))
        if kind in ("boolean", "string"):
            return _exactly(bool if kind == "boolean" else str, kind)
        raise DataError(f"A value of type {type_name(kind)} cannot be written as Avro's {node['type']}")

    def _struct(self, schema: Schema, node: Mapping[str, Any]) -> Write:
        if node["type"] != "record":
            raise DataError(f"A value of type STRUCT cannot be written as Avro's {node['type']}")
        name = str(node["name"])
        if name in self._records:
            return self._records[name]
        fields: list[tuple[str, str, Write, Any]] = []

        def write(value: Any) -> Any:
            if not isinstance(value, Struct):
                raise _wrong("struct", value)
            if value.schema is not schema and not _same(value.schema, schema):
                raise DataError("Mismatching struct schema")
            values, at = value.values, ""
            record = {}
            try:
                for at, avro_name, function, default in fields:
                    inner = values.get(at)
                    record[avro_name] = function(default if inner is None else inner)
            except DataError as error:
                raise DataError(f"{error} (field {at})") from None
            return record

        self._records[name] = write
        types = {field["name"]: field["type"] for field in node["fields"]}
        for struct_field in schema.fields:
            avro_name = self.options.scrubbed(struct_field.name)
            if avro_name in types:
                ignored = self.options.ignore_default_for_nullables and struct_field.schema.optional
                default = None if ignored else struct_field.schema.default
                fields.append((struct_field.name, avro_name, self.of(struct_field.schema, types[avro_name]), default))
        del self._records[name]
        return write

    def _map(self, key: Schema, value: Schema, node: Mapping[str, Any]) -> Write:
        if "values" in node:
            write_value = self.of(value, node["values"])

            def as_map(mapping: Any) -> Any:
                if not isinstance(mapping, Mapping):
                    raise _wrong("map", mapping)
                if not all(isinstance(key, str) for key in mapping):
                    raise DataError("Invalid type for MAP: not all keys are strings")
                return {key: write_value(mapping[key]) for key in in_order(tuple(mapping))}

            return as_map
        entry: Any = self.parsed.resolved(node["items"])
        types = {field["name"]: field["type"] for field in entry["fields"]}
        write_key, write_inner = self.of(key, types["key"]), self.of(value, types["value"])

        def as_entries(mapping: Any) -> Any:
            if not isinstance(mapping, Mapping):
                raise _wrong("map", mapping)
            return [{"key": write_key(key), "value": write_inner(inner)} for key, inner in mapping.items()]

        return as_entries

    def _union(self, schema: Schema, node: Mapping[str, Any] | list[Any]) -> Write:
        members = [
            (n, member) for n, member in enumerate(node if isinstance(node, list) else [node]) if member != "null"
        ]
        by_name = {member_field(self.parsed, member, self.options, n): member for n, member in members}
        in_order = {field.name: member for field, (_, member) in zip(schema.fields, members, strict=False)}
        functions: list[tuple[str, str, Write]] = []
        for struct_field in schema.fields:
            member = self.parsed.resolved(by_name.get(struct_field.name) or in_order[struct_field.name])
            assert isinstance(member, Mapping)
            functions.append((struct_field.name, _tag(member), self.base(struct_field.schema, member)))

        def write(value: Any) -> Any:
            if value is not None and not isinstance(value, Struct):
                raise _wrong("struct", value)
            values = {} if value is None else value.values
            for name, tag, function in functions:
                inner = values.get(name)
                if inner is not None:
                    return tag, function(inner)
            if schema.optional:
                return None
            raise _null()

        return write


def _tag(node: Mapping[str, Any]) -> str:
    """Returns the library's tag of a union's member."""
    return str(node["name"] if node["type"] in names.NAMED else node["type"])


def _same(schema: Schema, other: Schema) -> bool:
    """Whether structs of one schema can be written with the other: a default or `optional` are the field's."""
    if isinstance(schema, Recurring) or isinstance(other, Recurring):
        return schema.name == other.name and [f.name for f in schema.fields] == [f.name for f in other.fields]
    return schema == other or (schema.name == other.name and schema.fields == other.fields)


def _not_null(function: Write) -> Write:
    def write(value: Any) -> Any:
        if value is None:
            raise _null()
        return function(value)

    return write


def _integer(kind: str) -> Write:
    bound = INTEGER_RANGES[kind]

    def write(value: Any) -> Any:
        if isinstance(value, int) and value is not True and value is not False and -bound <= value < bound:
            return value
        raise _wrong(kind, value)

    return write


def _real(kind: str) -> Write:
    def write(value: Any) -> Any:
        if isinstance(value, float):
            return value
        raise _wrong(kind, value)

    return write


def _exactly(python_type: type, kind: str) -> Write:
    def write(value: Any) -> Any:
        if isinstance(value, python_type):
            return value
        raise _wrong(kind, value)

    return write


def _bytes(size: int | None) -> Write:
    def write(value: Any) -> Any:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong("bytes", value)
        if size is not None and len(value) != size:
            raise DataError(f"Fixed size {size} is not that of the value, {len(value)} bytes")
        return value

    return write


def _list(function: Write) -> Write:
    def write(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _wrong("array", value)
        return [function(item) for item in value]

    return write


def _null() -> DataError:
    return DataError("Found null value for non-optional schema")


def _wrong(kind: str, value: Any) -> DataError:
    if isinstance(value, int) and kind in INTEGER_RANGES and not isinstance(value, bool):
        return DataError(f"Invalid type for {type_name(kind)}: {value} is beyond its range")
    return DataError(f"Invalid type for {type_name(kind)}: class {java_class(value)}")
