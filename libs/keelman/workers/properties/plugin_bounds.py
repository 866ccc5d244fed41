"""Reads the resource limits of third-party code from the worker's properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keelman.workers.properties.reader import PropertyReader


@dataclass(frozen=True, slots=True)
class PluginBounds:
    """Limits of third-party code. `answer_seconds`: the most time for a method that a worker calls. Memory in bytes, 0
    for no bound."""

    answer_seconds: float
    host_memory: int


def plugin_bounds(raw: Mapping[str, str]) -> PluginBounds:
    """Returns the limits in the worker's properties. Raises InvalidArgument."""
    reader = PropertyReader(raw)
    bounds = read_bounds(reader)
    reader.end()
    return bounds


def read_bounds(reader: PropertyReader) -> PluginBounds:
    """Reads the limits; the reader notes errors."""
    return PluginBounds(
        reader.number("keelman.plugin.answer.timeout.ms", 30_000, 1) / 1000,
        reader.number("keelman.plugin.host.memory.bytes", 2 << 30, 0),
    )
