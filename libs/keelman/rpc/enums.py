"""The wire contract's enum values as words, RUNNING for CLUSTER_STATE_RUNNING; and whether a request's are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from keelman.model.errors import InvalidArgument


def word(enum: Any, value: int) -> str:
    """Returns a value as a word; `enum` is the generated enum, e.g. ClusterState. Raises ValueError for an unknown
    value."""
    return str(enum.Name(value)).removeprefix(prefix_of(enum.DESCRIPTOR.name))


def state_word(message: Any) -> str:
    """Returns the value of a message's field `state` as a word. Raises KeyError for an unknown value."""
    enum = message.DESCRIPTOR.fields_by_name["state"].enum_type
    return str(enum.values_by_number[message.state].name).removeprefix(prefix_of(enum.name))


@cache
def prefix_of(enum: str) -> str:
    """Returns the prefix of an enum's value names, as buf's lint requires it: CLUSTER_STATE_ for ClusterState."""
    return "".join(f"_{c}" if c.isupper() and at else c for at, c in enumerate(enum)).upper() + "_"


def check_enums(request: Message) -> None:
    """Raises InvalidArgument where an enum value, at any depth, is not in this version of the contract: proto3 lets
    every number through, also those that only a newer client knows."""
    for path, enum, value in _enums(request, ""):
        if value not in enum.values_by_number:
            raise InvalidArgument.of(path, value, f"one of {', '.join(enum.values_by_name)}")


def _enums(message: Message, above: str) -> Iterator[tuple[str, EnumDescriptor, int]]:
    """Yields each enum value that is set, with its path such as spec.goal."""
    leading = _leading(message.DESCRIPTOR)
    for field, value in message.ListFields():
        if field not in leading:
            continue
        path = f"{above}{field.name}"
        for name, item in _items(path, field, value):
            if isinstance(item, Message):
                yield from _enums(item, f"{name}.")
            elif (enum := _value_of(field).enum_type) is not None:
                yield name, enum, item


def _items(path: str, field: FieldDescriptor, value: Any) -> Iterable[tuple[str, Any]]:
    if not field.is_repeated:
        return [(path, value)]
    pairs = value.items() if _value_of(field) is not field else enumerate(value)
    return [(f"{path}[{key}]", item) for key, item in pairs]


def _value_of(field: FieldDescriptor) -> FieldDescriptor:
    """Returns the field of a map's values; any other field itself."""
    kind = field.message_type
    return field if kind is None or not kind.GetOptions().map_entry else kind.fields_by_name["value"]


@cache
def _leading(kind: Descriptor) -> frozenset[FieldDescriptor]:
    """Returns the fields that are enums or messages that may contain some; Google's own types are not searched."""
    return frozenset(f for f in kind.fields if _has_enums(f, frozenset()))


def _has_enums(field: FieldDescriptor, above: frozenset[str]) -> bool:
    kind = field.message_type
    if kind is None:
        return field.enum_type is not None
    if kind.full_name in above or kind.full_name.startswith("google."):
        return False
    return any(_has_enums(field, above | {kind.full_name}) for field in kind.fields)
