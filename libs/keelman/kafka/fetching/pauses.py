"""Pauses for other tasks, after records have come and before more are requested."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping

from keelman.kafka.fetching.settings import FetchSettings
from keelman.runtime.supervise import wait_or_stop

CALM_SECONDS = 0.1
LITTLE_BYTES = 1 << 14


class Pauses:
    """The pauses of one fetcher. Used in its loop."""

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._hurry = asyncio.Event()
        self._hurried = 0

    async def make_way(self, brought: Mapping[str, int]) -> None:
        """Called with the bytes of records that an answer brought, by topic; waits according to the settings."""
        if brought.keys() <= self._settings.calm:
            await wait_or_stop(self._hurry, CALM_SECONDS)
        elif self._settings.makes_way and sum(brought.values()) < LITTLE_BYTES:
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def hurried(self) -> Iterator[None]:
        """Has calm topics read like others within the block."""
        self._hurried += 1
        self._hurry.set()
        try:
            yield
        finally:
            self._hurried -= 1
            if not self._hurried:
                self._hurry.clear()
