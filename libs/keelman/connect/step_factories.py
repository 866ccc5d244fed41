"""Registers converters, transforms and predicates that do not come with keelman: their provider notes how to create
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from keelman.connect.config.plugin_kinds import PluginType

Make = Callable[[Mapping[str, str]], Any]
"""Creates a step from its own keys, without the prefix of its alias. Raises ConfigValueError, ConnectError."""
_known: dict[tuple[str, PluginType], Make] = {}


def note(class_name: str, kind: PluginType, make: Make) -> None:
    """Registers the class in this process, by its full name."""
    _known[class_name, kind] = make


def of_kind(kind: PluginType) -> Mapping[str, Make]:
    """Returns the registered classes of a kind."""
    return {name: make for (name, step_kind), make in _known.items() if step_kind is kind}


def named_steps(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yields the keys of a connector's configuration with a converter, transform or predicate in use, and the names."""
    for role in ("key", "value", "header"):
        yield f"{role}.converter", config.get(f"{role}.converter", "").strip()
    for alias in listed(config, "transforms"):
        yield f"transforms.{alias}.type", config.get(f"transforms.{alias}.type", "").strip()
        if bound := config.get(f"transforms.{alias}.predicate", "").strip():
            yield f"predicates.{bound}.type", config.get(f"predicates.{bound}.type", "").strip()


def listed(config: Mapping[str, str], key: str) -> list[str]:
    """Returns the aliases in a list."""
    return [alias.strip() for alias in config.get(key, "").split(",") if alias.strip()]
