"""Remembers when each node last reported, to this state service or to another of its database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keelman.model.node import NodeFigures


@dataclass(frozen=True, slots=True)
class Beat:
    """The last report of a node. `at` is monotonic, in seconds."""

    at: float
    time: datetime
    figures: NodeFigures | None
    is_own: bool
    """True if this process received it."""


@dataclass(slots=True)
class Heard:
    """The last reports of all nodes."""

    clock: Callable[[], float] = time.monotonic
    _beats: dict[str, Beat] = field(default_factory=dict)
    _since: float | None = None

    def note(self, node: str, figures: NodeFigures | None = None, *, is_own: bool = False) -> None:
        """Stores that a node reported, to this process or to another; without figures the former ones stay."""
        before = self._beats.get(node)
        figures_now = figures or (before.figures if before is not None else None)
        self._beats[node] = Beat(self.clock(), datetime.now(UTC), figures_now, is_own)

    def of(self, node: str) -> Beat | None:
        """Returns the last report of a node; None if there is none."""
        return self._beats.get(node)

    def forget(self, node: str) -> None:
        """Forgets a node that is gone or was judged."""
        self._beats.pop(node, None)

    def newer_than(self, at: float) -> Iterator[tuple[str, Beat]]:
        """Yields the nodes that reported after a moment."""
        return ((node, beat) for node, beat in self._beats.items() if beat.at > at)

    def listens(self) -> None:
        """Begins to measure silence: from now on all reports arrive here, and silence before now does not count."""
        if self._since is None:
            self._since = self.clock()

    def deaf(self) -> None:
        """Ends measuring silence: reports to other state services no longer arrive, so no node may be judged."""
        self._since = None

    def begin(self, leads: bool) -> None:
        """Called when this process begins or ends to judge nodes: silence counts from now on."""
        if leads and self._since is not None:
            self._since = self.clock()

    def silence(self, node: str) -> float:
        """Returns the seconds that a node has been silent while reports arrived; 0 while they do not."""
        if self._since is None:
            return 0.0
        beat = self._beats.get(node)
        return self.clock() - max(self._since, beat.at if beat is not None else self._since)
