"""Computes how much memory third-party code may have in its slot."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.copying_keys import SLOT_MEMORY
from keelman.runtime.processes.output_brake import bound_memory


def bound_slot(worker: Mapping[str, str]) -> None:
    """Bounds this process, which is a third-party connector's alone, as the worker's properties say.

    Raises ConfigValueError.
    """
    bound_memory(SLOT_MEMORY.among(worker))
