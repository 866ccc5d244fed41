"""Converts messages to Connect's data: one function for a message's schema, created once."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32, cut
from keelman.connect.protobuf.logical import READERS
from keelman.connect.protobuf.names import KEY, VALUE, WRAPPER_TYPES
from keelman.connect.protobuf.read_schema import (
    MESSAGES,
    SCALARS,
    enum_type_of,
    field_protos,
    is_map,
    message_of,
    read_schema,
    real_oneofs,
    says_optional,
    union_field,
)
from keelman.connect.protobuf.write_schema import ProtobufOptions
from keelman.connect.schema import Schema, Struct

_Read = Callable[[Any], Any]
_ENUM = descriptor_pb2.FieldDescriptorProto.TYPE_ENUM


class MessageReader:
    """Reads messages of one kind, for any thread."""

    def __init__(self, message: Descriptor, options: ProtobufOptions, version: int | None = None) -> None:
        """`version` is the schema's in its subject. Raises DataError for a schema that Connect cannot hold."""
        self.schema = read_schema(message, options, version)
        self._name = message.full_name
        self._parse = GetMessageClass(message).FromString
        self._options = options
        self._structs: dict[int, list[_Read]] = {}
        if self.schema.type == "struct":
            self._read = self._struct(message, self.schema)
        else:
            self._read = self._wrapped(message, self.schema)

    def read(self, data: bytes) -> Any:
        """Returns the value of a message's bytes. Raises DataError."""
        try:
            return self._read(self._parse(data))
        except DecodeError as error:
            raise DataError(f"The payload is no {self._name}: {error}") from None
        except RecursionError:
            raise DataError(f"The {self._name} is nested too deeply") from None

    def _struct(self, message: Descriptor, schema: Schema) -> _Read:
        """Creates a struct's function; a schema that contains itself calls the function under construction."""
        entry = self._structs.get(id(schema))
        if entry is not None:
            return lambda value: entry[0](value)  # noqa: PLW0108  it is not there yet
        self._structs[id(schema)] = cell = []
        schemas = {field.name: field.schema for field in schema.fields}
        protos, oneofs = field_protos(message), real_oneofs(message)
        within = {field.name for oneof in oneofs for field in oneof.fields}
        always: list[str] = []
        others: list[tuple[str, bool, _Read]] = []
        for field in message.fields:
            if field.name in within:
                continue
            repeated_or_plain = field.is_repeated or field.type not in MESSAGES
            checked = not (
                (repeated_or_plain and not says_optional(field, protos[field.name], self._options))
                or self._options.generate_struct_for_nulls
            )
            read = self._value(field, schemas[field.name])
            if read is None and not checked:
                always.append(field.name)
            else:
                others.append((field.name, checked, read or _same))
        flat = self._options.flatten_unions
        unions = [
            (oneof.name, None if flat else union_field(oneof, self._options), self._members(oneof, schema, flat=flat))
            for oneof in oneofs
        ]
        reader = _struct_reader(schema, always, others, unions)
        cell.append(reader)
        return reader

    def _members(self, oneof: Any, schema: Schema, *, flat: bool) -> tuple[Schema, dict[str, _Read]]:
        if flat:
            union = schema
        else:
            name = union_field(oneof, self._options)
            union = next(field.schema for field in schema.fields if field.name == name)
        schemas = {field.name: field.schema for field in union.fields}
        return union, {field.name: self._value(field, schemas[field.name]) or _same for field in oneof.fields}

    def _value(self, field: FieldDescriptor, schema: Schema) -> _Read | None:
        """Creates a field's function; None for a value that is the same in Connect as in the message."""
        if is_map(field):
            return self._map(field, schema)
        if field.is_repeated:
            assert schema.value is not None
            each = self._single(field, schema.value)
            return list if each is None else lambda values: [each(value) for value in values]
        return self._single(field, schema)

    def _map(self, field: FieldDescriptor, schema: Schema) -> _Read:
        assert schema.key is not None
        assert schema.value is not None
        parts = {field.name: field for field in message_of(field).fields}
        key = self._value(parts[KEY], schema.key) or _same
        value = self._value(parts[VALUE], schema.value) or _same
        if message_of(field).GetOptions().map_entry:
            return lambda mapping: {key(k): value(v) for k, v in mapping.items()}
        pairs = attrgetter(KEY, VALUE)

        def read(entries: Any) -> dict[Any, Any]:
            try:
                return {key(k): value(v) for k, v in map(pairs, entries)}
            except TypeError:
                raise DataError(f"The keys of {field.full_name} cannot be those of a map") from None

        return read

    def _single(self, field: FieldDescriptor, schema: Schema) -> _Read | None:
        if field.type in MESSAGES:
            logical = READERS.get(schema.name or "")
            if logical is not None:
                return logical
            if schema.type != "struct":
                return self._wrapped(message_of(field), schema)
            return self._struct(message_of(field), schema)
        if field.type == _ENUM:
            return None if schema.type == "int32" else _symbol(field)
        return _scalar(SCALARS[field.type], schema)

    def _wrapped(self, message: Descriptor, schema: Schema) -> _Read:
        inner = _scalar(WRAPPER_TYPES[message.full_name], schema) or _same
        return lambda value: inner(value.value)


def _struct_reader(
    schema: Schema,
    always: list[str],
    others: list[tuple[str, bool, _Read]],
    unions: list[tuple[str, str | None, tuple[Schema, dict[str, _Read]]]],
) -> _Read:
    getter = attrgetter(*always) if len(always) > 1 else None

    def read(message: Any) -> Struct:
        if getter is not None:
            values = dict(zip(always, getter(message), strict=True))
        else:
            values = {name: getattr(message, name) for name in always}
        for name, checked, convert in others:
            if not checked or message.HasField(name):
                values[name] = convert(getattr(message, name))
        for oneof, union_name, (union, members) in unions:
            name = message.WhichOneof(oneof)
            if name is not None:
                value = members[name](getattr(message, name))
                if union_name is None:
                    values[name] = value
                else:
                    values[union_name] = Struct(union, {name: value})
        return Struct(schema, values)

    return read


def _same(value: Any) -> Any:
    return value


def _scalar(word: str, schema: Schema) -> _Read | None:
    if schema.type in ("int8", "int16"):
        bits = int(schema.type.removeprefix("int"))
        return lambda value: cut(value, bits)
    if schema.type == "float":
        return Float32
    if word in ("uint64", "fixed64"):
        return lambda value: cut(value, 64)
    return None


def _symbol(field: FieldDescriptor) -> _Read:
    symbols: dict[int, str] = {}
    for value in enum_type_of(field).values:
        symbols.setdefault(value.number, value.name)
    unknown = f"UNKNOWN_ENUM_VALUE_{enum_type_of(field).name}_"
    return lambda number: symbols.get(number) or f"{unknown}{number}"
