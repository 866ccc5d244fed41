"""What a converter's configuration says, as fields of a class of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class Options:
    """A base of dataclasses with slots; their fields are named as their keys, with underscores for dots."""

    __slots__: tuple[str, ...] = ()

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Self:
        """Those of a parsed configuration."""
        return cls(**{name: config[name.replace("_", ".")] for name in cls.__slots__})
