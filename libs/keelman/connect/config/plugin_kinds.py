"""Kinds of plugins, and the facts about existing plugins that the validation of a configuration needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Protocol

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.types import trim


class PluginType(Enum):
    """Kinds of plugins under Connect's names, in Connect's order."""

    SINK = "sink"
    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"

    @property
    def interface(self) -> str:
        """The simple name of Java's interface for it; a class's alias is its name without that."""
        words = "connector" if self in (PluginType.SINK, PluginType.SOURCE) else self.value
        return "".join(word.capitalize() for word in words.split("_"))


def aliases(class_name: str, kind: PluginType) -> set[str]:
    """Returns the simple name, and that without its interface: `FileStreamSource`; for `Cast$Key` it is `Key`."""
    simple = class_name.rpartition(".")[2].rpartition("$")[2]
    place = simple.rfind(kind.interface)
    return {simple, simple[:place] if place > 0 else simple}


def resolved(name: str, classes: Mapping[str, Collection[PluginType]]) -> str | None:
    """Returns the class, of these with their kinds, for a name: the full name, or an alias that no other class has.

    None when unknown, and when several have the alias.
    """
    matches = meant(name, classes)
    return matches[0] if len(matches) == 1 else None


def meant(name: str, classes: Mapping[str, Collection[PluginType]]) -> list[str]:
    """Returns the classes, of these with their kinds, that a name may mean: the one with this full name, else all with
    the alias."""
    trimmed = trim(name)
    if trimmed in classes:
        return [trimmed]
    return sorted(full for full, kinds in classes.items() if any(trimmed in aliases(full, kind) for kind in kinds))


class Plugins(Protocol):
    """All plugins of a worker. Class names are full ones unless stated otherwise."""

    def find(self, name: str) -> str | None:
        """Returns a class's full name by its full name, simple name or alias; None when unknown or ambiguous."""

    def classes(self, kind: PluginType) -> list[str]:
        """Returns the classes of a kind, sorted."""

    def is_a(self, class_name: str, kind: PluginType) -> bool:
        """Whether the class is of this kind."""

    def nested(self, class_name: str) -> list[str]:
        """Returns the plugins nested in a class that is not a plugin itself: `X$Key` and `X$Value` for `X`."""

    def versions(self, class_name: str) -> list[str]:
        """Returns the available versions, one for each kind that the class is of."""

    def definition(self, class_name: str, kind: PluginType, version: str | None = None) -> ConfigDef:
        """Returns the keys of a class, in the latest version within `version`. Raises VersionRangeError, and the
        class's own errors."""
