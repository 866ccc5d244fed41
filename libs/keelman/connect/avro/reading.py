"""Converts fastavro's values to Connect's, by functions that are created once for each schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.avro import names
from keelman.connect.avro.logical import reader
from keelman.connect.avro.names import AvroOptions
from keelman.connect.avro.parsed import NO_SYMBOL, TAGGED, Avro, Parsed, is_entry, member_field
from keelman.connect.converters.logical import LOGICAL
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, Int32, cut
from keelman.connect.schema import Schema, Struct

Read = Callable[[Any], Any]


def read_function(schema: Schema, parsed: Parsed, options: AvroOptions) -> Read:
    """Returns a function from the library's values to Connect's, for a schema of `read_schema`; it raises DataError."""
    try:
        function = _Functions(parsed, options).of(schema, parsed.schema)
    except RecursionError:
        raise DataError("The Avro schema is nested too deeply") from None
    return function or _as_it_is


def read_anything(value: Mapping[str, Any]) -> Any:  # noqa: PLR0911  one line a type
    """Returns the value of a record Anything."""
    for name in ("boolean", "bytes", "double"):
        if value[name] is not None:
            return value[name]
    if value["float"] is not None:
        return Float32(value["float"])
    if value["int"] is not None:
        return Int32(value["int"])
    for name in ("long", "string"):
        if value[name] is not None:
            return value[name]
    if value["array"] is not None:
        return [read_anything(_untagged(item)) for item in value["array"]]
    if value["map"] is not None:
        pairs = [
            (read_anything(_untagged(entry["key"])), read_anything(_untagged(entry["value"]))) for entry in value["map"]
        ]
        try:
            return dict(pairs)
        except TypeError:
            raise DataError("A map whose keys are lists or maps cannot be read") from None
    return None


def _untagged(value: Any) -> Any:
    return value[1] if isinstance(value, tuple) else value


@dataclass(slots=True)
class _Functions:
    """Creates functions; None for a function that would change nothing."""

    parsed: Parsed
    options: AvroOptions
    _records: dict[str, Read] = field(default_factory=dict)
    """The enclosing records' functions, for records that contain themselves."""

    def of(self, schema: Schema, avro: Avro) -> Read | None:
        node = self.parsed.resolved(avro)
        if isinstance(node, Mapping):
            return self._base(schema, node)
        real = [(n, member) for n, member in enumerate(node) if member != "null"]
        if len(node) == 1 and self.options.flatten_singleton_unions:
            return self._member(schema, node[0])
        if len(node) == 2 and len(real) == 1:
            inner = self._member(schema, real[0][1])
            return None if inner is None else lambda value: None if value is None else inner(value)
        return self._union(schema, real)

    def _member(self, schema: Schema, avro: Avro) -> Read | None:
        """Creates the function of a union's only member, whose values may come with its name."""
        node = self.parsed.resolved(avro)
        inner = self.of(schema, avro)
        if not isinstance(node, Mapping) or not (node["type"] in names.NAMED or node.get("logicalType") == TAGGED):
            return inner
        if inner is None:
            return lambda value: value[1]
        return lambda value: inner(value[1])

    def _base(self, schema: Schema, node: Mapping[str, Any]) -> Read | None:
        kind = schema.type
        if schema.name in LOGICAL:
            return reader(schema)
        if kind in ("int8", "int16"):
            bits = INTEGERS[kind][1]
            return lambda value: cut(value, bits)
        if (plain := _PLAIN.get("enum" if node["type"] == "enum" else kind)) is not None:
            return plain
        if kind == "array" and schema.value is not None:
            inner = self.of(schema.value, node["items"])
            return None if inner is None else lambda value: [inner(item) for item in value]
        if kind == "map":
            return self._map(schema, node)
        return self._struct(schema, node) if kind == "struct" else None

    def _map(self, schema: Schema, node: Mapping[str, Any]) -> Read | None:
        assert schema.key is not None
        assert schema.value is not None
        if "values" in node:
            inner = self.of(schema.value, node["values"])
            return None if inner is None else lambda value: {key: inner(value) for key, value in value.items()}
        entry = self.parsed.resolved(node["items"])
        assert isinstance(entry, Mapping)
        assert is_entry(entry)
        types = {field["name"]: field["type"] for field in entry["fields"]}
        key, value = self.of(schema.key, types["key"]) or _as_it_is, self.of(schema.value, types["value"]) or _as_it_is

        def read(entries: Any) -> Any:
            try:
                return {key(entry["key"]): value(entry["value"]) for entry in entries}
            except TypeError:
                raise DataError("A map whose keys are lists, maps or structs cannot be read") from None

        return read

    def _struct(self, schema: Schema, node: Mapping[str, Any]) -> Read:
        name = str(node["name"])
        if name in self._records:
            outer = self._records[name]
            return lambda value: Struct(schema, outer(value).values)
        types = {field["name"]: field["type"] for field in node["fields"]}
        changing: list[tuple[str, Read]] = []

        def read(value: Any) -> Any:
            for name, function in changing:
                value[name] = function(value[name])
            return Struct(schema, value)

        self._records[name] = read
        for struct_field in schema.fields:
            function = self.of(struct_field.schema, types[struct_field.name])
            if function is not None:
                changing.append((struct_field.name, function))
        del self._records[name]
        return read

    def _union(self, schema: Schema, members: list[tuple[int, Any]]) -> Read:
        fields = {field.name: field.schema for field in schema.fields}
        by_tag: dict[str, tuple[str, Read]] = {}
        for place, member in members:
            node = self.parsed.resolved(member)
            assert isinstance(node, Mapping)
            name = member_field(self.parsed, member, self.options, place)
            tag = str(node["name"] if node["type"] in names.NAMED else node["type"])
            by_tag[tag] = name, self._base(fields[name], node) or _as_it_is

        def read(value: Any) -> Any:
            if value is None:
                return None
            tag, inner = value
            name, function = by_tag[tag]
            return Struct(schema, {name: function(inner)})

        return read


def _int(value: int) -> int:
    if -0x80000000 <= value <= 0x7FFFFFFF:
        return value
    raise DataError(f"{value} is no int of Avro: it has more than 32 bits")


def _symbol(value: str) -> str:
    if value == NO_SYMBOL:
        raise DataError("The place of a symbol is beyond those of its enum")
    return value


def _as_it_is(value: Any) -> Any:
    return value


_PLAIN: Mapping[str, Read] = {"int32": _int, "float": Float32, "enum": _symbol}
