"""Translates a message of a Protobuf schema into a Connect schema, in Confluent's mapping.

https://docs.confluent.io/platform/current/schema-registry/connect.html#protobuf
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.errors import DataError
from keelman.connect.protobuf.names import (
    ENTRY,
    ENUM,
    KEY,
    LOGICAL_NAMES,
    PRECISION,
    TAG,
    TYPE,
    UNION,
    VALUE,
    WRAPPER_TYPES,
    map_name,
)
from keelman.connect.protobuf.write_schema import ProtobufOptions
from keelman.connect.recurring_schema import Recurring
from keelman.connect.registry.sum_types import ANY_ENUM, ANY_UNION
from keelman.connect.schema import Field, Schema

_Proto = descriptor_pb2.FieldDescriptorProto
SCALARS: dict[int, str] = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in _Proto.Type.items()
    if number not in (_Proto.TYPE_MESSAGE, _Proto.TYPE_GROUP, _Proto.TYPE_ENUM)
}
"""The type names of Protobuf's schema language, by their numbers in descriptors."""
MESSAGES = (_Proto.TYPE_MESSAGE, _Proto.TYPE_GROUP)
_CONNECT = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "int32"),
    **dict.fromkeys(("int64", "uint32", "fixed32", "uint64", "sint64", "fixed64", "sfixed64"), "int64"),
    "bool": "boolean",
}


def message_of(field: FieldDescriptor) -> Descriptor:
    """Returns the message type of a message field."""
    assert field.message_type is not None
    return field.message_type


def enum_type_of(field: FieldDescriptor) -> EnumDescriptor:
    """Returns the enum type of an enum field."""
    assert field.enum_type is not None
    return field.enum_type


def real_oneofs(message: Descriptor) -> list[OneofDescriptor]:
    """Returns the oneofs of a message without the synthetic ones for `optional` in proto3."""
    labels = field_protos(message)
    return [oneof for oneof in message.oneofs if not any(labels[field.name].proto3_optional for field in oneof.fields)]


def field_protos(message: Descriptor) -> dict[str, _Proto]:
    """Returns the declarations of a message's fields, by their names."""
    proto = descriptor_pb2.DescriptorProto()
    message.CopyToProto(proto)
    return {field.name: field for field in proto.field}


def says_optional(field: FieldDescriptor, proto: _Proto, options: ProtobufOptions) -> bool:
    """Whether a field without a value is null: it is declared `optional`."""
    if proto.proto3_optional:
        return True
    if not options.optional_for_proto2 or not field.has_presence or field.type in MESSAGES:
        return False
    return proto.label == _Proto.LABEL_OPTIONAL and field.containing_oneof is None


def is_map(field: FieldDescriptor) -> bool:
    """Whether a repeated message is a map's entries, whether or not it is declared as a map."""
    if not field.is_repeated or field.type not in MESSAGES:
        return False
    entry = message_of(field)
    names = [field.name for field in entry.fields]
    return entry.name.endswith(ENTRY) and names == [KEY, VALUE] and not any(field.is_repeated for field in entry.fields)


def read_schema(message: Descriptor, options: ProtobufOptions, version: int | None = None) -> Schema:
    """Returns the schema of such a message's records; `version` is the schema's version in its subject."""
    if options.wrapper_for_raw_primitives and message.full_name in WRAPPER_TYPES:
        return replace(_scalar(WRAPPER_TYPES[message.full_name]), parameters=(), version=version)
    try:
        return replace(_Reader(options).struct(message), version=version)
    except RecursionError:
        raise DataError(f"The schema of {message.full_name} is nested too deeply") from None


class _Reader:
    """Reads one schema."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._open: dict[str, list[Recurring]] = {}
        self._done: dict[str, tuple[Field, ...]] = {}

    def struct(self, message: Descriptor, *, optional: bool = False, tag: str | None = None) -> Schema:
        name = message.full_name
        about: dict[str, Any] = {
            "name": self._name(message),
            "optional": optional,
            "parameters": () if tag is None else ((TAG, tag),),
        }
        if name in self._done:
            return Schema("struct", fields=self._done[name], **about)
        if name in self._open:
            again = Recurring("struct", **about)
            self._open[name].append(again)
            return again
        self._open[name] = []
        schema = Schema("struct", fields=self._fields(message), **about)
        for recurring in self._open.pop(name):
            recurring.close(schema)
        self._done[name] = schema.fields
        return schema

    def _name(self, thing: Descriptor) -> str:
        return str(thing.full_name if self._options.enhanced_protobuf_schema_support else thing.name)

    def _fields(self, message: Descriptor) -> tuple[Field, ...]:
        protos, oneofs = field_protos(message), real_oneofs(message)
        within = {field.name for oneof in oneofs for field in oneof.fields}
        fields: list[Field] = []
        for oneof in oneofs:
            members = tuple(Field(f.name, self._field(f, protos[f.name], member=True)) for f in oneof.fields)
            if self._options.flatten_unions:
                fields += members
            else:
                fields.append(Field(union_field(oneof, self._options), self._union(oneof, members)))
        fields += [
            Field(field.name, self._field(field, protos[field.name]))
            for field in message.fields
            if field.name not in within
        ]
        return tuple(fields)

    def _union(self, oneof: OneofDescriptor, members: tuple[Field, ...]) -> Schema:
        if self._options.generalized_sum_type_support:
            about: tuple[str, tuple[tuple[str, str], ...]] = oneof.name, ((ANY_UNION, oneof.name),)
        else:
            name = oneof.full_name if self._options.enhanced_protobuf_schema_support else oneof.name
            about = f"{UNION}.{name}", ()
        return Schema("struct", optional=True, name=about[0], parameters=about[1], fields=members)

    def _field(self, field: FieldDescriptor, proto: _Proto, *, member: bool = False) -> Schema:
        options, tag = self._options, str(field.number)
        optional = member or (
            bool(proto.proto3_optional or (field.has_presence and proto.label == _Proto.LABEL_OPTIONAL))
            if options.optional_for_nullables
            else not options.wrapper_for_nullables
        )
        if is_map(field):
            schema = self._map(message_of(field))
        elif field.type in MESSAGES:
            schema = self._message(field, proto)
        elif field.type == _Proto.TYPE_ENUM:
            schema = self._enum(field)
        else:
            schema = _scalar(SCALARS[field.type], _params(proto), optional=optional)
        if field.is_repeated and schema.type != "map":
            element = schema if schema.optional else replace(schema, optional=True)
            return Schema("array", optional=True, value=element, parameters=((TAG, tag),))
        return _tagged(schema, tag)

    def _message(self, field: FieldDescriptor, proto: _Proto) -> Schema:
        message = message_of(field)
        logical = LOGICAL_NAMES.get(message.full_name)
        if logical == DECIMAL:
            params = _params(proto)
            parameters = [("scale", _whole(params.get("scale")) or "0")]
            if precision := _whole(params.get("precision")):
                parameters.append((PRECISION, precision))
            return Schema("bytes", optional=True, name=DECIMAL, version=1, parameters=tuple(parameters))
        if logical is not None:
            return replace(_LOGICAL_SCHEMAS[logical], optional=True)
        if self._options.wrapper_for_nullables and message.full_name in WRAPPER_TYPES:
            return replace(_scalar(WRAPPER_TYPES[message.full_name]), parameters=(), optional=True)
        return self.struct(message, optional=True, tag=None if field.is_repeated else str(field.number))

    def _map(self, entry: Descriptor) -> Schema:
        protos = field_protos(entry)
        key, value = (self._field(field, protos[field.name]) for field in entry.fields)
        return Schema("map", optional=True, name=map_name(self._name(entry)), key=key, value=value)

    def _enum(self, field: FieldDescriptor) -> Schema:
        enum, options = enum_type_of(field), self._options
        prefix = ANY_ENUM if options.generalized_sum_type_support else ENUM
        symbols = ((f"{prefix}.{value.name}", str(value.number)) for value in enum.values)
        return Schema(
            "int32" if options.int_for_enums else "string",
            optional=True,
            name=str(enum.full_name if options.enhanced_protobuf_schema_support else enum.name),
            parameters=((prefix, str(enum.name)), *symbols),
        )


def union_field(oneof: OneofDescriptor, options: ProtobufOptions) -> str:
    """Returns the field name for a oneof: its own, with its index unless `generate.index.for.unions` is false."""
    return f"{oneof.name}_{oneof.index}" if options.generate_index_for_unions else str(oneof.name)


def _scalar(word: str, params: dict[str, str] | None = None, *, optional: bool = False) -> Schema:
    kind = _CONNECT.get(word, word)
    narrow = (params or {}).get("connect.type")
    if kind == "int32" and narrow in ("int8", "int16"):
        return Schema(narrow, optional=optional)
    parameters = ((TYPE, word),) if kind in ("int32", "int64") and word != kind else ()
    return Schema(kind, optional=optional, parameters=parameters)


def _tagged(schema: Schema, tag: str) -> Schema:
    if any(key == TAG for key, _ in schema.parameters):
        return schema
    return replace(schema, parameters=(*schema.parameters, (TAG, tag)))


def _whole(text: str | None) -> str | None:
    return text if text is not None and text.removeprefix("-").isdecimal() else None


def _params(proto: _Proto) -> dict[str, str]:
    """Returns the parameters of `(confluent.field_meta)`, option 1088."""
    if not proto.HasField("options"):
        return {}
    options = _options_class().FromString(proto.options.SerializeToString())
    return {param.key: param.value for param in options.meta.params}  # type: ignore[attr-defined]


@cache
def _options_class() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(name="keelman/field_options.proto", package="keelman")
    text, message, repeated = _Proto.TYPE_STRING, _Proto.TYPE_MESSAGE, _Proto.LABEL_REPEATED
    param = file.message_type.add(name="Param")
    param.field.add(name="key", number=1, type=text)
    param.field.add(name="value", number=2, type=text)
    meta = file.message_type.add(name="Meta")
    meta.field.add(name="params", number=2, type=message, type_name=".keelman.Param", label=repeated)
    whole = file.message_type.add(name="Options")
    whole.field.add(name="meta", number=1088, type=message, type_name=".keelman.Meta")
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("keelman.Options"))


_LOGICAL_SCHEMAS = {str(schema.name): schema for schema in (DATE_SCHEMA, TIME_SCHEMA, TIMESTAMP_SCHEMA)}
