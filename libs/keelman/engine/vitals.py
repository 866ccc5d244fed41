"""Whether a slot may still act."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Vitals:
    """Whether this slot may still act. Any thread may ask; once False it stays False.

    A gap is noticed by whoever looks first, the ticking loop or a task loop about to commit, before anything refreshes
    it: so a process that was frozen cannot be talked into life again by beats that waited in its socket.
    """

    limit_seconds: float
    clock: Callable[[], float] = time.monotonic
    _ticked: float = field(init=False)
    _heard: float = field(init=False)
    _lost: str = ""

    def __post_init__(self) -> None:
        self._ticked = self._heard = self.clock()

    def allowed(self) -> bool:
        """True while the home was heard and this process was awake within the limit."""
        now = self.clock()
        if not self._lost and now - self._ticked > self.limit_seconds:
            self._lost = f"this slot was frozen for {now - self._ticked:.1f} s"
        if not self._lost and now - self._heard > self.limit_seconds:
            self._lost = f"no beat of the Spark service for {now - self._heard:.1f} s"
        return not self._lost

    def tick(self) -> None:
        """The event loop is awake."""
        if self.allowed():
            self._ticked = self.clock()

    def heard(self) -> None:
        """A message of the home came."""
        if self.allowed():
            self._heard = self.clock()

    def lose(self, why: str) -> None:
        """The home is gone."""
        self._lost = self._lost or why

    @property
    def lost(self) -> str:
        """Why this slot may not act any more; empty while it may."""
        return self._lost
