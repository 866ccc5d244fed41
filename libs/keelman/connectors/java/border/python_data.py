"""Connect's data across the border between Java and Python: schemas, structs and all values, logical types too.

Each value crosses by itself, which costs some microseconds for each field: the way of converters that are written in
Python. A schema crosses once, and what takes its values across is made with it.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from keelman.connect.converters.logical import DECIMAL, LOGICAL
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32, Int8, Int16, Int32
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.times import TIMES, Time, moment, ms_of
from keelman.connectors.java.jvm import java_class, jpype

CONNECT = "org.apache.kafka.connect.data"
MAX_SCHEMAS = 1000
Cross = Callable[[Any], Any]
_TYPES = {"FLOAT32": "float", "FLOAT64": "double"}
_JAVA_TYPES = {ours: java for java, ours in _TYPES.items()}
_SIMPLE: Mapping[str, tuple[str, Cross]] = {
    "int8": ("Byte", int),
    "int16": ("Short", int),
    "int32": ("Integer", int),
    "int64": ("Long", int),
    "float": ("Float", float),
    "double": ("Double", float),
    "boolean": ("Boolean", bool),
    "string": ("String", str),
}
_PLAIN: Mapping[str, Cross] = {
    "java.lang.Boolean": bool,
    "java.lang.Byte": Int8,
    "java.lang.Short": Int16,
    "java.lang.Integer": Int32,
    "java.lang.Long": int,
    "java.lang.Float": Float32,
    "java.lang.Double": float,
    "java.lang.String": str,
}


class FromJava:
    """Takes values out of Java. Used by one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Schema, Cross]] = {}
        self._identity = java_class("java.lang.System").identityHashCode
        self._bytes: Any = jpype().JArray(jpype().JByte)
        self._buffer = java_class("java.nio.ByteBuffer")
        self._struct = java_class(f"{CONNECT}.Struct")
        self._map = java_class("java.util.Map")
        self._collection = java_class("java.util.Collection")
        self._decimal = java_class("java.math.BigDecimal")
        self._date = java_class("java.util.Date")
        self._kinds: tuple[tuple[Any, Cross], ...] = (
            (self._bytes, self._binary),
            (self._buffer, self._binary),
            (self._struct, lambda value: self._schema(value.schema())[1](value)),
            (self._map, self._map_of_plain),
            (self._collection, lambda value: [self._plain(item) for item in value]),
            (self._decimal, lambda value: decimal.Decimal(str(value.toString()))),
            (self._date, lambda value: moment(int(value.getTime()))),
        )
        self._to_array = java_class("org.apache.kafka.common.utils.Utils").toArray

    def taken(self, schema: Any, value: Any) -> tuple[Schema | None, Any]:
        """Our schema and value for Java's. Raises DataError."""
        if schema is None:
            return None, self._plain(value)
        ours, cross = self._schema(schema)
        return ours, cross(value)

    def _schema(self, schema: Any) -> tuple[Schema, Cross]:
        number = int(self._identity(schema))
        entry = self._known.get(number)
        if entry is not None and entry[0].equals(schema):  # at once for the very same, which it mostly is
            return entry[1], entry[2]
        ours, cross = self._read(schema)
        if len(self._known) >= MAX_SCHEMAS:
            self._known.clear()
        self._known[number] = schema, ours, cross
        return ours, cross

    def _read(self, schema: Any) -> tuple[Schema, Cross]:
        kind, name = str(schema.type().name()), schema.name()
        ours = Schema(
            _TYPES.get(kind, kind.lower()),
            bool(schema.isOptional()),
            None if name is None else str(name),
            None if schema.version() is None else int(schema.version()),
            None if schema.doc() is None else str(schema.doc()),
            _parameters(schema.parameters()),
        )
        ours, cross = self._crossing(schema, ours)
        default = schema.defaultValue()
        if default is not None and ours.type != "struct":
            ours = replace(ours, default=cross(default))
        return ours, _unless_none(cross)

    def _crossing(self, schema: Any, ours: Schema) -> tuple[Schema, Cross]:
        if ours.name in LOGICAL:
            return ours, self._logical(ours.name or "")
        if ours.type == "struct":
            return self._of_structs(schema, ours)
        if ours.type == "array":
            value, item = self._schema(schema.valueSchema())
            return replace(ours, value=value), lambda values: [item(element) for element in values]
        if ours.type == "map":
            (key, first), (value, second) = self._schema(schema.keySchema()), self._schema(schema.valueSchema())
            return replace(ours, key=key, value=value), lambda mapping: {
                first(entry.getKey()): second(entry.getValue()) for entry in mapping.entrySet()
            }
        return ours, self._simple(ours.type)

    def _of_structs(self, schema: Any, struct_schema: Schema) -> tuple[Schema, Cross]:
        fields: list[Field] = []
        crossings: list[tuple[str, Any, Cross]] = []
        for field in schema.fields():
            ours, cross = self._schema(field.schema())
            fields.append(Field(str(field.name()), ours))
            crossings.append((str(field.name()), field.name(), cross))
        whole = replace(struct_schema, fields=tuple(fields))

        def values(struct: Any) -> dict[str, Any]:
            get = struct.getWithoutDefault
            return {name: cross(get(java)) for name, java, cross in crossings}

        default = schema.defaultValue()
        if default is not None:
            whole = replace(whole, default=Struct(whole, values(default)))
        return whole, lambda struct: Struct(whole, values(struct))

    def _logical(self, name: str) -> Cross:
        kind = self._decimal if name == DECIMAL else self._date
        return lambda value: self._plain(_of(kind, value))

    def _simple(self, kind: str) -> Cross:
        if kind == "bytes":
            return self._binary
        box, cast = _SIMPLE[kind]
        java = java_class(f"java.lang.{box}")
        return lambda value: cast(_of(java, value))

    def _binary(self, value: Any) -> bytes:
        return bytes(memoryview(self._to_array(value) if isinstance(value, self._buffer) else value))

    def _plain(self, value: Any) -> Any:
        """Converts a value without a schema, or with its own."""
        if value is None:
            return None
        for kind, cross in self._kinds:
            if isinstance(value, kind):
                return cross(value)
        name = str(value.getClass().getName())
        if name not in _PLAIN:
            raise DataError(f"Data of class {name} has no counterpart outside Java")
        return _PLAIN[name](value)

    def _map_of_plain(self, mapping: Any) -> dict[Any, Any]:
        return {self._plain(entry.getKey()): self._plain(entry.getValue()) for entry in mapping.entrySet()}


class ToJava:
    """Takes values into Java. Used by one thread at a time."""

    def __init__(self) -> None:
        library = jpype()
        self._known: dict[int, tuple[Schema, Any, Cross]] = {}
        self._schema_class = java_class(f"{CONNECT}.ConnectSchema")
        self._types = java_class(f"{CONNECT}.Schema$Type")
        self._field = java_class(f"{CONNECT}.Field")
        self._struct = java_class(f"{CONNECT}.Struct")
        self._list = java_class("java.util.ArrayList")
        self._map = java_class("java.util.LinkedHashMap")
        self._string = java_class("java.lang.String")
        self._number = java_class("java.lang.Integer")
        self._decimal = java_class("java.math.BigDecimal")
        self._date = java_class("java.util.Date")
        self._bytes: Any = library.JArray(library.JByte)
        boxes = {
            "int8": ("Byte", library.JByte),
            "int16": ("Short", library.JShort),
            "int32": ("Integer", library.JInt),
            "int64": ("Long", library.JLong),
            "float": ("Float", library.JFloat),
            "double": ("Double", library.JDouble),
            "boolean": ("Boolean", library.JBoolean),
        }
        self._boxes = {kind: _boxing(java_class(f"java.lang.{box}"), convert) for kind, (box, convert) in boxes.items()}
        self._of_class: Mapping[type, Cross] = {
            bool: self._boxes["boolean"],
            Int8: self._boxes["int8"],
            Int16: self._boxes["int16"],
            Int32: self._boxes["int32"],
            int: self._boxes["int64"],
            Float32: self._boxes["float"],
            float: self._boxes["double"],
            str: self._string,
            bytes: self._bytes,
            decimal.Decimal: lambda value: self._decimal(str(value)),
            **dict.fromkeys(TIMES, self._moment),
        }

    def given(self, schema: Schema | None, value: Any) -> tuple[Any, Any]:
        """Java's schema and value for ours. Raises DataError."""
        if schema is None:
            return None, self._plain(value)
        java, cross = self._schema(schema)
        return java, cross(value)

    def _schema(self, schema: Schema) -> tuple[Any, Cross]:
        entry = self._known.get(id(schema))
        if entry is not None and entry[0] is schema:
            return entry[1], entry[2]
        java, cross = self._made(schema)
        if len(self._known) >= MAX_SCHEMAS:
            self._known.clear()
        self._known[id(schema)] = schema, java, cross
        return java, cross

    def _made(self, schema: Schema) -> tuple[Any, Cross]:
        fields = default = None
        if schema.default is not None:
            default = self._schema(replace(schema, default=None))[1](schema.default)
        if schema.type == "struct":
            fields = self._list()
            for index, field in enumerate(schema.fields):
                fields.add(self._field(field.name, jpype().JInt(index), self._schema(field.schema)[0]))
        java = self._java(schema, fields, default)
        return java, _unless_none(self._crossing(schema, java))

    def _java(self, schema: Schema, fields: Any, default: Any) -> Any:
        parameters = None
        if schema.parameters:
            parameters = self._map()
            for key, value in schema.parameters:
                parameters.put(key, value)
        inner = (None if part is None else self._schema(part)[0] for part in (schema.key, schema.value))
        kind = self._types.valueOf(_JAVA_TYPES.get(schema.type, schema.type.upper()))
        version = None if schema.version is None else self._number(jpype().JInt(schema.version))
        return self._schema_class(
            kind, schema.optional, default, schema.name, version, schema.doc, parameters, fields, *inner
        )

    def _crossing(self, schema: Schema, java: Any) -> Cross:
        if schema.name in LOGICAL:
            return self._plain
        if schema.type == "struct":
            return self._of_structs(schema, java)
        if schema.type == "array" and schema.value is not None:
            return self._list_of(self._schema(schema.value)[1])
        if schema.type == "map" and schema.key is not None and schema.value is not None:
            return self._map_of(self._schema(schema.key)[1], self._schema(schema.value)[1])
        if schema.type in self._boxes:
            return self._boxes[schema.type]
        return self._string if schema.type == "string" else self._binary

    def _of_structs(self, schema: Schema, java: Any) -> Cross:
        fields = [(field.name, self._string(field.name), self._schema(field.schema)[1]) for field in schema.fields]

        def struct(value: Struct) -> Any:
            java_struct = self._struct(java)
            for name, key, cross in fields:
                inner = value.values.get(name)
                if inner is not None:
                    java_struct.put(key, cross(inner))
            return java_struct

        return struct

    def _list_of(self, item: Cross) -> Cross:
        def made(value: Any) -> Any:
            java_list = self._list(len(value))
            for element in value:
                java_list.add(item(element))
            return java_list

        return made

    def _map_of(self, first: Cross, second: Cross) -> Cross:
        def made(value: Any) -> Any:
            java_map = self._map()
            for key, item in value.items():
                java_map.put(first(key), second(item))
            return java_map

        return made

    def _binary(self, value: Any) -> Any:
        return self._bytes(bytes(value))

    def _moment(self, value: Time) -> Any:
        return self._date(jpype().JLong(ms_of(value)))

    def _plain(self, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Struct):
            return self._schema(value.schema)[1](value)
        if isinstance(value, Mapping):
            return self._map_of(self._plain, self._plain)(value)
        if isinstance(value, list | tuple):
            return self._list_of(self._plain)(value)
        cross = self._of_class.get(type(value))
        if cross is None:
            raise DataError(f"Data of class {type(value).__name__} has no counterpart in Java")
        return cross(value)


def _parameters(mapping: Any) -> tuple[tuple[str, str], ...]:
    return (
        () if mapping is None else tuple((str(entry.getKey()), str(entry.getValue())) for entry in mapping.entrySet())
    )


def _unless_none(cross: Cross) -> Cross:
    return lambda value: None if value is None else cross(value)


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise DataError(f"Invalid type for {kind.class_.getName()}: class {value.getClass().getName()}")
    return value


def _boxing(box: Any, kind: Any) -> Cross:
    return lambda value: box.valueOf(kind(value))
