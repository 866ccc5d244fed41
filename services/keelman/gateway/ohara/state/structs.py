"""Stores JSON in a Struct without loss: whole numbers come back as int, also those that no double can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from google.protobuf.struct_pb2 import Struct, Value

R = TypeVar("R")
EXACT = 1 << 53
NUMBER = "$number"
"""The only key of an object in place of a number that no double can hold."""


def struct_of(value: Mapping[str, Any]) -> Struct:
    """Returns a JSON object as a Struct."""
    struct = Struct()
    struct.update({key: _kept(item) for key, item in value.items()})
    return struct


def value_of(struct: Struct) -> dict[str, Any]:
    """Returns the JSON object of a Struct."""
    return {key: _given(field) for key, field in struct.fields.items()}


def as_sent(answer: R, spec: Any) -> R:
    """Returns a just written resource with the `extra` of the sent spec: the answer to a write hides values that are
    named like secrets."""
    resource: Any = answer
    resource.spec.extra.CopyFrom(spec.extra)
    return answer


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kept(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        return {NUMBER: str(value)}
    return value


def _given(value: Value) -> Any:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() and abs(number) <= EXACT else number
        case "bool_value":
            return value.bool_value
        case "list_value":
            return [_given(item) for item in value.list_value.values]
        case "struct_value":
            return _object(value.struct_value)
    return None


def _object(struct: Struct) -> Any:
    value = {key: _given(field) for key, field in struct.fields.items()}
    if len(value) == 1 and isinstance(text := value.get(NUMBER), str) and text.removeprefix("-").isdecimal():
        return int(text)
    return value
