"""Holds the options of the Java virtual machine that this process may start: set before by code that knows the
process's limits."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_HEAP_BYTES = 256 << 20
METASPACE_BYTES = 192 << 20
CODE_CACHE_BYTES = 96 << 20
DIRECT_BYTES = 64 << 20
MACHINE_BYTES = METASPACE_BYTES + CODE_CACHE_BYTES + DIRECT_BYTES
"""The memory that a machine may use beside its heap."""
MACHINE_SECONDS = 60.0
"""The longest time for its start."""


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Options of a machine. `more` are words of its command line, which override keelman's."""

    heap_bytes: int = DEFAULT_HEAP_BYTES
    more: tuple[str, ...] = ()


_options = MachineOptions()


def set_machine_options(options: MachineOptions) -> None:
    """Sets the options of a machine that starts after this."""
    global _options  # noqa: PLW0603  a process has one machine in its life
    _options = options


def machine_options() -> MachineOptions:
    """Returns the options that were set, else the defaults."""
    return _options
