"""Computes how much memory third-party code may have in its slot."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.copying_keys import CONNECTOR_HEAP, CONNECTOR_OPTIONS, JVM_HEAP, JVM_OPTIONS, SLOT_MEMORY
from keelman.runtime.java.machine_options import MACHINE_BYTES, MachineOptions, set_machine_options
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.output_brake import bound_memory

_log = get_logger()
MIN_HEAP_BYTES = 16 << 20


def bound_slot(worker: Mapping[str, str], connector: Mapping[str, str]) -> None:
    """Bounds this process, which is a third-party connector's alone, as the worker's properties say.

    A Java virtual machine that it starts has its heap and options from there, too, or from the connector. Raises
    ConfigValueError.
    """
    bound = SLOT_MEMORY.among(worker)
    heap = CONNECTOR_HEAP.among(connector) or JVM_HEAP.among(worker)
    if bound and heap + MACHINE_BYTES > bound:
        least = max(MIN_HEAP_BYTES, bound - MACHINE_BYTES)
        _log.warning("java_heap_bounded", wanted=heap, bytes=least, by=SLOT_MEMORY.name, bound=bound)
        heap = least
    set_machine_options(
        MachineOptions(heap, (*JVM_OPTIONS.among(worker).split(), *(CONNECTOR_OPTIONS.among(connector) or "").split()))
    )
    bound_memory(bound)
