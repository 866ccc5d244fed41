"""Knows when each node was last heard of, by this state service or by another one of its database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keelman.model.node import NodeFigures


@dataclass(frozen=True, slots=True)
class Beat:
    """The last sign of a node. `at` is monotonic, in seconds."""

    at: float
    time: datetime
    figures: NodeFigures | None
    is_own: bool
    """Whether it was said to this process."""


@dataclass(slots=True)
class Heard:
    """Signs of life of all nodes."""

    clock: Callable[[], float] = time.monotonic
    _beats: dict[str, Beat] = field(default_factory=dict)
    _since: float | None = None

    def note(self, node: str, figures: NodeFigures | None = None, *, is_own: bool = False) -> None:
        """A node has said something, to this process or to another; without figures those before it stay."""
        before = self._beats.get(node)
        kept = figures or (before.figures if before is not None else None)
        self._beats[node] = Beat(self.clock(), datetime.now(UTC), kept, is_own)

    def of(self, node: str) -> Beat | None:
        """The last sign of a node."""
        return self._beats.get(node)

    def forget(self, node: str) -> None:
        """It is gone, or was judged."""
        self._beats.pop(node, None)

    def newer_than(self, at: float) -> Iterator[tuple[str, Beat]]:
        """Nodes that were heard of after a moment."""
        return ((node, beat) for node, beat in self._beats.items() if beat.at > at)

    def listens(self) -> None:
        """From now on whatever is said of a node is heard here; nobody was silent before."""
        if self._since is None:
            self._since = self.clock()

    def deaf(self) -> None:
        """What other state services hear is not known any more: nobody may be judged."""
        self._since = None

    def begin(self, leads: bool) -> None:
        """Called when this process begins or ends to judge nodes: it has listened since now."""
        if leads and self._since is not None:
            self._since = self.clock()

    def silence(self, node: str) -> float:
        """For how many seconds a node was silent while one listened; 0 while nobody does."""
        if self._since is None:
            return 0.0
        beat = self._beats.get(node)
        return self.clock() - max(self._since, beat.at if beat is not None else self._since)
