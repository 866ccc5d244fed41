"""Selects keys of a configuration by their prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")


def under(prefix: str, config: Mapping[str, Value]) -> dict[str, Value]:
    """The keys that begin with the prefix, without it."""
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
