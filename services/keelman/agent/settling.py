"""Tells by gRPC's health protocol when the workloads of a started agent run: rollouts from node to node wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from keelman.rpc.server import Health
from keelman.runtime.logs.logging import get_logger

log = get_logger()
WORKLOADS = "workloads"
"""The name in the health protocol; NOT_SERVING until then."""
LOOK_SECONDS = 0.5


@dataclass(slots=True)
class Settling:
    """A workload that cannot run holds nothing up for longer than `seconds`, counted from the agent's start."""

    health: Health
    all_run: Callable[[], bool]
    seconds: float
    clock: Callable[[], float] = time.monotonic
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    async def run(self) -> None:
        """Runs until cancelled. What ends after that time does not change the answer."""
        switch = self.health.named(WORKLOADS)
        await switch.unready()
        while True:
            runs, since = self.all_run(), self.clock() - self._begun
            if runs or since >= self.seconds:
                break
            await asyncio.sleep(LOOK_SECONDS)
        log.info("settled", all_run=runs, seconds=round(since, 1))
        await switch.ready()
        await asyncio.Event().wait()
