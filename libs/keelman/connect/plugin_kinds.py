"""Kinds of plugins, and what validating a configuration must know of those that there are."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from keelman.connect.config_def import ConfigDef


class Kind(Enum):
    """Kinds of plugins under Connect's names, in the order in which Connect lists them."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"

    @property
    def interface(self) -> str:
        """The simple name of Java's interface for it; without it a class's name is its alias."""
        words = "connector" if self in (Kind.SINK, Kind.SOURCE) else self.value
        return "".join(word.capitalize() for word in words.split("_"))


class Plugins(Protocol):
    """All plugins of a worker. Class names are full ones unless said otherwise."""

    def find(self, name: str) -> str | None:
        """The full name of a class by its full name, its simple one or its alias; None when unknown or ambiguous."""

    def classes(self, kind: Kind) -> list[str]:
        """The classes of a kind, sorted."""

    def is_a(self, class_name: str, kind: Kind) -> bool:
        """Whether the class is of this kind."""

    def nested(self, class_name: str) -> list[str]:
        """Plugins within a class that is none itself: `X$Key` and `X$Value` for `X`."""

    def versions(self, class_name: str) -> list[str]:
        """The versions that there are, one for each kind that the class is of."""

    def definition(self, class_name: str, kind: Kind) -> ConfigDef:
        """The keys of a class. Raises what the class raises."""
