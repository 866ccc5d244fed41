"""Lists the task records in the config topic, and those that deleted connectors have left. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class StoredTasks:
    """For each connector bits for the records of its tasks: bit 0 for the commit, bit n + 1 for task n."""

    bits: dict[str, int] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)  # have something stored, and are no connectors

    def note(self, name: str, bit: int, *, there: bool, connector: bool) -> None:
        """Takes note that such a record exists or has been deleted; `connector` tells whether a connector has the
        name."""
        bits = self.bits.get(name, 0)
        bits = bits | 1 << bit if there else bits & ~(1 << bit)
        if bits:
            self.bits[name] = bits
        else:
            self.bits.pop(name, None)
        self.compare(name, connector=connector)

    def compare(self, name: str, *, connector: bool) -> None:
        """Takes note whether a connector has the name."""
        if name in self.bits and not connector:
            self._gone.add(name)
        else:
            self._gone.discard(name)

    def leftovers(self) -> list[tuple[bytes, None]]:
        """Returns tombstones for the leftovers of deleted connectors."""
        return [
            (f"task-{name}-{bit - 1}".encode() if bit else f"commit-{name}".encode(), None)
            for name in sorted(self._gone)
            for bit in range(self.bits[name].bit_length() - 1, -1, -1)
            if self.bits[name] >> bit & 1
        ]
