"""What third-party code may have and take: keys of the worker's properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from keelman.engine.plugin_memory import SLOT_MEMORY, SLOT_MEMORY_DEFAULT
from keelman.model.errors import InvalidArgument

ANSWER_MS = "keelman.plugin.answer.timeout.ms"
HOST_MEMORY = "keelman.plugin.host.memory.bytes"
DEFAULTS = {ANSWER_MS: 30_000, HOST_MEMORY: 2 << 30, SLOT_MEMORY: SLOT_MEMORY_DEFAULT}
LEAST = {ANSWER_MS: 1, HOST_MEMORY: 0, SLOT_MEMORY: 0}


@dataclass(frozen=True, slots=True)
class PluginBounds:
    """`answer_seconds`: how long a method that a worker asks may take. Memory in bytes, 0 for no bound."""

    answer_seconds: float
    host_memory: int
    slot_memory: int


def plugin_bounds(raw: Mapping[str, str]) -> PluginBounds:
    """What the worker's properties say. Raises InvalidArgument."""
    found = {key: _number(key, raw.get(key, "").strip()) for key in DEFAULTS}
    return PluginBounds(found[ANSWER_MS] / 1000, found[HOST_MEMORY], found[SLOT_MEMORY])


def _number(key: str, text: str) -> int:
    try:
        value = int(text or DEFAULTS[key])
    except ValueError:
        value = -1
    if value < LEAST[key]:
        raise InvalidArgument.of(key, text, f"a whole number, at least {LEAST[key]}")
    return value
