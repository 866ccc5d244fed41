"""Payloads of rows and resources of the model, each made of the other by the names of keys and fields.

Times are whole microseconds since 1970 UTC.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, TypeVar, cast

from keelman.state.database.times import micros, moment

T = TypeVar("T")
Packed: TypeAlias = Mapping[str, str | Sequence[str] | Mapping[str, str]]
"""Keys of a payload without the field of their name: they hold another field, or JSON of several, by their names or by
keys."""
_NOTHING_PACKED: Packed = {}


def payload_of(resource: Any, packed: Packed = _NOTHING_PACKED, left_out: Collection[str] = ()) -> dict[str, Any]:
    """Returns the payload of a resource's row: its fields, except name and etag, which have columns, and those left
    out."""
    apart = {"name", "etag", *left_out, *(name for fields in packed.values() for name in _names(fields))}
    payload = {
        name: _plain(getattr(resource, name)) for name in _readers(cast(Any, type(resource))) if name not in apart
    }
    for key, fields in packed.items():
        if isinstance(fields, str):
            payload[key] = _plain(getattr(resource, fields))
        else:
            payload[key] = {part: _plain(getattr(resource, name)) for part, name in _pairs(fields)}
    return payload


def resource_of(
    kind: type[T], name: str, revision: int, payload: Mapping[str, Any], packed: Packed = _NOTHING_PACKED, /,
    **instead: Any,
) -> T:  # fmt: skip
    """Returns the resource of a row; `instead` has fields that the payload does not have. Fields that came later have
    their defaults."""
    readers = _readers(cast(Any, kind))
    stored = {field: value for field, value in payload.items() if field in readers and field not in packed}
    stored |= {field: value for field, value in (("name", name), ("etag", str(revision))) if field in readers}
    for key, fields in packed.items():
        if isinstance(fields, str):
            stored[fields] = payload[key]
        else:
            stored |= {field: payload[key][part] for part, field in _pairs(fields) if part in payload[key]}
    return kind(**{field: readers[field](value) for field, value in stored.items() if field not in instead}, **instead)


def _names(fields: str | Sequence[str] | Mapping[str, str]) -> list[str]:
    return [fields] if isinstance(fields, str) else [name for _, name in _pairs(fields)]


def _pairs(fields: Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    return list(fields.items()) if isinstance(fields, Mapping) else [(name, name) for name in fields]


def plain(value: Any) -> dict[str, Any]:
    """Returns a dataclass as JSON values."""
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return plain(value)


def read(kind: type[T], stored: Any) -> T:
    """Returns a value of the model from the JSON of `plain`; fields that came later have their defaults."""
    return cast(T, _reader(cast(Any, kind))(stored))


@cache
def _readers(kind: type[Any]) -> Mapping[str, Callable[[Any], Any]]:
    hints = typing.get_type_hints(kind)
    return {field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind) if field.init}


@cache
def _reader(hint: Any) -> Callable[[Any], Any]:
    if hint is datetime:
        return moment
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if dataclasses.is_dataclass(hint):
        kind, readers = cast(Any, hint), _readers(cast(Any, hint))
        return lambda stored: kind(**{name: readers[name](value) for name, value in stored.items() if name in readers})
    if typing.get_origin(hint) is tuple:
        of_one = _reader(typing.get_args(hint)[0])
        return lambda stored: tuple(map(of_one, stored))
    if typing.get_origin(hint) is types.UnionType:
        return _reader_of_one([kind for kind in typing.get_args(hint) if kind is not types.NoneType])
    return lambda stored: stored


def _reader_of_one(kinds: Sequence[Any]) -> Callable[[Any], Any]:
    """Returns a reader that chooses, among several kinds, the one whose needed fields are all present."""

    def found(stored: Any) -> Any:
        if stored is None:
            return None
        kind = kinds[0] if len(kinds) == 1 else next(kind for kind in kinds if _needed(kind) <= stored.keys())
        return _reader(kind)(stored)

    return found


@cache
def _needed(kind: type[Any]) -> frozenset[str]:
    missing = dataclasses.MISSING
    fields = dataclasses.fields(kind)
    return frozenset(field.name for field in fields if field.default is missing and field.default_factory is missing)
