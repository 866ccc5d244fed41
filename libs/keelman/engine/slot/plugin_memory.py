"""Computes how much memory third-party code may have in its slot."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.definition import ConfigKey, Importance, Type, at_least
from keelman.runtime.processes.output_brake import bound_memory

SLOT_MEMORY = ConfigKey(
    "keelman.plugin.slot.memory.bytes",
    Type.LONG,
    4 << 30,
    Importance.LOW,
    "Most memory of the slot of a third-party connector's task; 0: no bound.",
    at_least(0),
)
"""A property of the worker; its slots read it."""


def bound_slot(worker: Mapping[str, str]) -> None:
    """Bounds this process, which is a third-party connector's alone, as the worker's properties say.

    Raises ConfigValueError.
    """
    bound_memory(SLOT_MEMORY.among(worker))
