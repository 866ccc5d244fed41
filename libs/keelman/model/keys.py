"""Reads keys of a configuration: those of a prefix, and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from keelman.model.errors import InvalidArgument

Value = TypeVar("Value")


def under(prefix: str, config: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the keys that begin with the prefix, without it."""
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def number_of(properties: Mapping[str, str], key: str, default: float) -> float:
    """Returns the number in a property, or the default if it is blank. Raises InvalidArgument."""
    text = properties.get(key, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise InvalidArgument.of(key, text, "a number") from None
