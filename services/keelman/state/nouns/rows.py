"""Columns of the nouns' tables, and the model's values as JSON in them. Times are whole microseconds since 1970 UTC."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import BigInteger, Column, Text
from sqlalchemy.types import JSON

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def micros(time: datetime) -> int:
    """A time as the tables keep it."""
    return (time - _EPOCH) // timedelta(microseconds=1)


def moment(value: int) -> datetime:
    """A time of the tables as an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=value)


def json_column() -> Any:
    """A column of JSON values."""
    return Column(JSON, nullable=False)


def big_column() -> Any:
    """A column of numbers of 64 bits."""
    return Column(BigInteger, nullable=False)


def text_column() -> Any:
    """A column of text of any length."""
    return Column(Text, nullable=False)


def plain(value: Any) -> dict[str, Any]:
    """A dataclass as JSON values; times become microseconds."""
    return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    return plain(value)


def read(kind: type[T], stored: Any) -> T:
    """A value of the model from the JSON that `plain` made of it; fields that came later have their defaults."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    found: T = _ADAPTERS[kind].validate_python(stored)
    return found


def plain_spec(spec: Any) -> dict[str, Any]:
    """A spec of any noun as it is stored."""
    return plain(spec)


def read_spec(kind: type[T], stored: Any) -> T:
    """A spec as it was stored."""
    return read(kind, stored)
