"""Checks periodically whether the state service can be reached. Without it a gateway serves only the workers' REST."""

from __future__ import annotations

import time
from collections.abc import Callable

from keelman.rpc.channels import Channel
from keelman.rpc.health import serves
from keelman.runtime.ticks import tick

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 2.0
AWAY_SECONDS = 5.0
"""A restart of the state service, or a handover to another, takes less time."""


class StateReach:
    """Checks while `run` runs. `peer` names the state service in messages."""

    def __init__(self, channel: Channel, *, peer: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._channel, self._peer, self._clock = channel, peer, clock
        self._answered = clock()

    @property
    def problem(self) -> str:
        """Why this gateway serves only the workers' REST, for people; empty while it serves all calls."""
        silent = self._clock() - self._answered >= AWAY_SECONDS
        return f"{self._peer} has not answered for {AWAY_SECONDS:g} s" if silent else ""

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            if await serves(self._channel, timeout_seconds=ANSWER_SECONDS):
                self._answered = self._clock()
            await tick(LOOK_SECONDS)
