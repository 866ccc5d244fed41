"""Runs the parts that only the leading state service of a database runs: plans, judges nodes, queries brokers, does
operations."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from keelman.model.errors import Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.state.database.failpoints import hit
from keelman.state.replicas.lease import Lease, LeaseLost

log = get_logger()
LEADER = "leader"
"""The name of the leader lease."""
Part: TypeAlias = tuple[str, Callable[[], Coroutine[Any, Any, None]]]


@dataclass(slots=True)
class LeaderRole:
    """Runs its parts while it has the lease, and begins them again each time that it gets the lease.

    The parts check each write against the lease within the transaction: a part that was paused, and continues while
    another process leads, stores nothing more.
    """

    lease: Lease
    listeners: Sequence[Callable[[bool], None]]
    """Called with true before the parts run, with false when they have ended."""

    async def run(self, parts: Sequence[Part]) -> None:
        """Runs until cancelled. If a part finds the database away, all parts end until the lease can be had again; any
        other error of a part ends this."""
        while True:
            await self.lease.take()
            log.info("leads", epoch=self.lease.epoch)
            hit("leads")
            self._notify(True)
            try:
                async with Siblings() as group:
                    for name, part in parts:
                        group.start(part(), name=name)
                    await self.lease.keep()
            except (LeaseLost, Unavailable) as error:
                log.warning("leads_no_more", epoch=self.lease.epoch, error=error.message)
            finally:
                self._notify(False)

    def _notify(self, leads: bool) -> None:
        for listener in self.listeners:
            listener(leads)
