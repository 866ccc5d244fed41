"""Writes Connect's data as messages: one function for a schema and its message, created once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import EncodeError
from google.protobuf.message_factory import GetMessageClass

from keelman.connect.errors import DataError
from keelman.connect.protobuf.logical import WRITERS
from keelman.connect.protobuf.names import KEY, LOGICAL, VALUE, WRAPPER_TYPES, enum_of, is_union, scrubbed
from keelman.connect.protobuf.read_schema import MESSAGES, SCALARS, enum_type_of, message_of
from keelman.connect.protobuf.write_schema import ProtobufOptions
from keelman.connect.schema import INTEGER_RANGES, Schema, Struct, checked, java_type

_Write = Callable[[Any], Any]
_ENUM = descriptor_pb2.FieldDescriptorProto.TYPE_ENUM
_INTEGERS = frozenset(word for word in SCALARS.values() if "int" in word or "fixed" in word)
_FITS = {
    **dict.fromkeys(INTEGER_RANGES, _INTEGERS),
    "float": frozenset({"float", "double"}),
    "double": frozenset({"double"}),
    "boolean": frozenset({"bool"}),
    "string": frozenset({"string"}),
    "bytes": frozenset({"bytes"}),
}


class MessageWriter:
    """Writes values of one schema, for any thread."""

    def __init__(self, schema: Schema, message: Descriptor, options: ProtobufOptions) -> None:
        """Finds fields by their names: the message's schema need not be ours. Raises DataError if one is missing
        or of a type that the value cannot have."""
        self._schema, self._name, self._options = schema, message.full_name, options
        self._structs: dict[tuple[int, str], list[_Write]] = {}
        self._class: Callable[..., Any] = GetMessageClass(message)
        if schema.type == "struct":
            self._fields = self._struct(schema, message)
        else:
            self._fields = self._wrapped(schema, message)

    def write(self, value: Any) -> bytes:
        """Returns a message's bytes. Raises DataError."""
        try:
            data: bytes = self._class(**self._fields(value)).SerializeToString()
        except (TypeError, ValueError, OverflowError, EncodeError) as error:
            raise DataError(f"The value cannot be written as {self._name}: {error}") from None
        except RecursionError:
            raise DataError(f"The value is nested too deeply for {self._name}") from None
        return data

    def _struct(self, schema: Schema, message: Descriptor) -> _Write:
        """Creates a struct's function; a schema that contains itself calls the function under construction."""
        entry = self._structs.get((id(schema), message.full_name))
        if entry is not None:
            return lambda value: entry[0](value)  # noqa: PLW0108  it is not there yet
        self._structs[id(schema), message.full_name] = cell = []
        entries: list[tuple[str, str | None, _Write, Schema]] = []
        for struct_field in schema.fields:
            if is_union(struct_field.schema):
                entries.append(
                    (struct_field.name, None, self._union(struct_field.schema, message), struct_field.schema)
                )
            else:
                field = self._found(message, struct_field.name)
                entries.append(
                    (struct_field.name, field.name, self._value(struct_field.schema, field), struct_field.schema)
                )
        writer = self._filled(schema, entries)
        cell.append(writer)
        return writer

    def _filled(self, schema: Schema, entries: list[tuple[str, str | None, _Write, Schema]]) -> _Write:
        defaults = not self._options.ignore_default_for_nullables

        def write(struct: Any) -> dict[str, Any]:
            if not isinstance(struct, Struct):
                checked(schema, struct)
            if struct.schema is not schema and struct.schema != schema:
                raise DataError("Mismatching struct schema")
            values, message = struct.values, {}
            name = ""
            try:
                for name, target, convert, inner_schema in entries:
                    value = values.get(name)
                    if value is None:
                        if inner_schema.default is not None and defaults:
                            value = inner_schema.default
                        elif inner_schema.optional:
                            continue
                        else:
                            checked(inner_schema, None)
                    if target is None:
                        inner, value = convert(value)
                        message[inner] = value
                    else:
                        message[target] = convert(value)
            except DataError as error:
                raise DataError(f"Field {name}: {error}") from None
            return message

        return write

    def _found(self, message: Descriptor, name: str) -> FieldDescriptor:
        field = message.fields_by_name.get(scrubbed(name) if self._options.scrub_invalid_names else name)
        if field is None:
            raise DataError(f"The Protobuf message {message.full_name} has no field {name}")
        return field

    def _union(self, schema: Schema, message: Descriptor) -> _Write:
        members = []
        for struct_field in schema.fields:
            field = self._found(message, struct_field.name)
            members.append((struct_field.name, field.name, self._value(struct_field.schema, field)))

        def write(struct: Any) -> tuple[str, Any]:
            if not isinstance(struct, Struct):
                checked(schema, struct)
            for name, target, convert in members:
                value = struct.values.get(name)
                if value is not None:
                    return target, convert(value)
            raise DataError("none of the fields of the union has a value")

        return write

    def _value(self, schema: Schema, field: FieldDescriptor) -> _Write:
        if schema.type == "array" and field.is_repeated:
            assert schema.value is not None
            return _array(schema, self._single(schema.value, field))
        if schema.type == "map" and field.is_repeated and field.type in MESSAGES:
            return self._map(schema, field)
        if field.is_repeated or schema.type in ("array", "map"):
            raise _unfit(schema, field)
        return self._single(schema, field)

    def _map(self, schema: Schema, field: FieldDescriptor) -> _Write:
        assert schema.key is not None
        assert schema.value is not None
        entry = message_of(field)
        key = self._value(schema.key, self._found(entry, KEY))
        value = self._value(schema.value, self._found(entry, VALUE))
        declared = entry.GetOptions().map_entry

        def write(mapping: Any) -> Any:
            checked(schema, mapping)
            if declared:
                return {key(k): value(v) for k, v in mapping.items()}
            return [
                ({} if k is None else {KEY: key(k)}) | ({} if v is None else {VALUE: value(v)})
                for k, v in mapping.items()
            ]

        return write

    def _single(self, schema: Schema, field: FieldDescriptor) -> _Write:
        if field.type not in MESSAGES:
            return _symbol(schema, field, self._options) if field.type == _ENUM else _scalar(schema, field)
        message = message_of(field)
        logical = LOGICAL.get(schema.name or "")
        if logical is not None:
            if message.full_name != logical[0]:
                raise _unfit(schema, field)
            return WRITERS[str(schema.name)]
        if schema.type == "struct":
            return self._struct(schema, message)
        if message.full_name not in WRAPPER_TYPES:
            raise _unfit(schema, field)
        return self._wrapped(schema, message)

    def _wrapped(self, schema: Schema, message: Descriptor) -> _Write:
        inner = _scalar(schema, self._found(message, VALUE))
        return lambda value: {VALUE: inner(value)}


def _unfit(schema: Schema, field: FieldDescriptor) -> DataError:
    kind = schema.name if schema.name in LOGICAL else java_type(schema)
    return DataError(f"A value of type {kind} cannot be written to {field.full_name}")


def _array(schema: Schema, each: _Write) -> _Write:
    def write(values: Any) -> list[Any]:
        checked(schema, values)
        if None in values:
            raise DataError("null is in an array, and Protobuf repeats no nulls")
        return [each(value) for value in values]

    return write


def _scalar(schema: Schema, field: FieldDescriptor) -> _Write:
    kind, word = schema.type, SCALARS.get(field.type, "")
    if schema.name in LOGICAL or word not in _FITS.get(kind, ()):
        raise _unfit(schema, field)
    if kind in INTEGER_RANGES:
        bound = INTEGER_RANGES[kind]
        wide = 1 << 64 if word in ("uint64", "fixed64") else 0  # Java's 64-bit numbers are signed

        def whole(value: Any) -> Any:
            if not isinstance(value, int) or isinstance(value, bool) or not -bound <= value < bound:
                checked(schema, value)
            return value if value >= 0 else value + wide

        return whole
    if kind == "bytes":
        return lambda value: bytes(checked(schema, value))  # type: ignore[call-overload]
    exact = {"float": float, "double": float, "boolean": bool, "string": str}[kind]

    def plain(value: Any) -> Any:
        return value if value.__class__ is exact else checked(schema, value)

    return plain


def _symbol(schema: Schema, field: FieldDescriptor, options: ProtobufOptions) -> _Write:
    if schema.type not in ("string", "int32"):
        raise _unfit(schema, field)
    if schema.type == "int32":
        return lambda value: checked(schema, value)
    try:
        enum = enum_of(schema, general=options.generalized_sum_type_support)
    except ValueError as error:
        raise DataError(f"The enum {schema.name} has an illegal number: {error}") from None
    numbers = {} if enum is None else enum[1]
    named = {value.name: value.number for value in enum_type_of(field).values}

    def write(value: Any) -> int:
        number = numbers.get(value, named.get(value)) if isinstance(value, str) else None
        if number is None:
            raise DataError(f"{value!r} is not a symbol of the enum {enum_type_of(field).name}")
        return number

    return write
