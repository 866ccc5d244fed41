"""Holds the options of the Java virtual machine that this process may start: set before by who knows the process's
limits."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_HEAP_BYTES = 256 << 20
METASPACE_BYTES = 192 << 20
CODE_CACHE_BYTES = 96 << 20
DIRECT_BYTES = 64 << 20
MACHINE_BYTES = METASPACE_BYTES + CODE_CACHE_BYTES + DIRECT_BYTES
"""What a machine may take beside its heap."""
MACHINE_SECONDS = 60.0
"""So long its start may take."""


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """`more` are words of the machine's command line, which win over keelman's."""

    heap_bytes: int = DEFAULT_HEAP_BYTES
    more: tuple[str, ...] = ()


_options = MachineOptions()


def set_machine_options(options: MachineOptions) -> None:
    """For a machine that starts after this."""
    global _options  # noqa: PLW0603  a process has one machine in its life
    _options = options


def machine_options() -> MachineOptions:
    """What was set, else the defaults."""
    return _options
