"""How much memory third-party code may have in its slot."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.runtime.output_brake import bound_memory

SLOT_MEMORY = "keelman.plugin.slot.memory.bytes"
SLOT_MEMORY_DEFAULT = 4 << 30


def bound_slot(worker: Mapping[str, str]) -> None:
    """Bounds this process, which is a third-party connector's alone, as the worker's properties say."""
    text = worker.get(SLOT_MEMORY, "").strip()
    bound_memory(int(text) if text.isdecimal() else SLOT_MEMORY_DEFAULT)
