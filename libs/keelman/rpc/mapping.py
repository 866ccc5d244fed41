"""Converts the model's dataclasses to messages of the wire contract and back, by the names of their fields.

Times are Timestamps, enums have their words after the prefix of the contract's enum, JSON is a Struct; None and empty
JSON are absent fields. The caller passes the fields that have another name or form on one side.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from keelman.rpc.enums import prefix_of
from keelman.rpc.times import from_timestamp, to_timestamp

M = TypeVar("M", bound=Message)
T = TypeVar("T")
Way: TypeAlias = Callable[[Any], Any]
_KNOWN: Mapping[str, tuple[Way, Way]] = {
    "google.protobuf.Timestamp": (to_timestamp, from_timestamp),
    "google.protobuf.Struct": (lambda value: value or None, MessageToDict),
}
"""The conversions to and from protobuf's own messages."""


def message_of(kind: type[M], value: Any, /, **overrides: Any) -> M:
    """Returns a message with the fields that a dataclass has too, and the given ones."""
    ways = _to_wire(cast(Any, kind), cast(Any, type(value)))
    return kind(**{name: way(getattr(value, name)) for name, way in ways.items() if name not in overrides}, **overrides)


def value_of(kind: type[T], message: Message, /, **overrides: Any) -> T:
    """Returns a dataclass with the fields that a message has too, and the given ones. Raises ValueError for a word that
    an enum does not have."""
    ways = _from_wire(cast(Any, kind), cast(Any, type(message)))
    return kind(**{name: way(message) for name, way in ways.items() if name not in overrides}, **overrides)


@cache
def _to_wire(kind: type[Message], value: type[Any]) -> Mapping[str, Way]:
    names = {field.name for field in dataclasses.fields(value)}
    return {name: _written(field) for name, field in kind.DESCRIPTOR.fields_by_name.items() if name in names}


def _written(field: Any) -> Way:
    if field.enum_type is not None:
        enum = field.enum_type
        return lambda word: enum.values_by_name[f"{prefix_of(enum.name)}{word}"].number
    if field.message_type is None:
        return _unchanged
    if field.message_type.GetOptions().map_entry:
        return dict
    if (convert := _KNOWN.get(field.message_type.full_name)) is not None:
        return convert[0]
    kind = GetMessageClass(field.message_type)
    if field.is_repeated:
        return lambda values: [message_of(kind, value) for value in values]
    return lambda value: None if value is None else message_of(kind, value)


@cache
def _from_wire(kind: type[Any], message: type[Message]) -> Mapping[str, Way]:
    hints, fields = typing.get_type_hints(kind), message.DESCRIPTOR.fields_by_name
    return {
        field.name: _read(fields[field.name], hints[field.name])
        for field in dataclasses.fields(kind)
        if field.name in fields
    }


def _read(field: Any, hint: Any) -> Way:
    name, convert = field.name, _made(field, hint)
    if field.has_presence and (type(None) in typing.get_args(hint)):
        return lambda message: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message: convert(getattr(message, name))


def _made(field: Any, hint: Any) -> Way:
    if field.enum_type is not None:
        return _word(field.enum_type, hint)
    if field.message_type is None:
        return tuple if field.is_repeated else _unchanged
    if field.message_type.GetOptions().map_entry:
        return dict
    if (convert := _KNOWN.get(field.message_type.full_name)) is not None:
        return convert[1]
    if field.is_repeated:
        return lambda values: tuple(value_of(_dataclass_in(hint), value) for value in values)
    return lambda value: value_of(_dataclass_in(hint), value)


@cache
def _dataclass_in(hint: Any) -> Any:
    """Returns the dataclass that a hint names, alone, with None or in a tuple."""
    return next(kind for kind in (hint, *typing.get_args(hint)) if dataclasses.is_dataclass(kind))


def _word(enum: EnumDescriptor, kind: Any) -> Way:
    prefix = prefix_of(enum.name)
    return lambda number: kind(enum.values_by_number[number].name.removeprefix(prefix))


def _unchanged(value: Any) -> Any:
    return value
