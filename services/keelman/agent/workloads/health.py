"""Checks whether a workload's process is ready: often while it starts, seldom while it runs. Looks, too, for the note
of a worker whose brokers or Spark service are out of its reach."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from keelman.agent.workloads.local import Local
from keelman.rpc.health import HealthClient
from keelman.runtime.home import Home
from keelman.workers import reach_note
from keelman.workers.reach_note import ReachNote

STARTING_SECONDS = 0.1
RUNNING_SECONDS = 2.0
MISSES = 3
ANSWER_SECONDS = 2.0
UNWELL_ANSWER_SECONDS = 5.0


class HealthWatch:
    """Watches one workload's health socket. Calls `changed` when the result differs from the one before."""

    def __init__(self, local: Local, home: Home, changed: Callable[[], None]) -> None:
        self._local = local
        self._socket = home.socket(local.name)
        self._health = HealthClient(f"unix:{self._socket}")
        self._brokers_file = local.folder / reach_note.FILE
        self._changed = changed

    async def _answers(self, seconds: float) -> bool:
        return self._socket.exists() and await self._health.is_serving(timeout_seconds=seconds)

    async def run(self) -> None:
        """Runs until cancelled. A running process counts as unwell after three checks in a row without an answer."""
        try:
            await self._watch()
        finally:
            await self._health.close()

    async def _watch(self) -> None:
        misses, watched = 0, self._local.child
        while True:
            local, child = self._local, self._local.child
            await asyncio.sleep(RUNNING_SECONDS if local.healthy_since is not None and not misses else STARTING_SECONDS)
            if child is None or local.child is not child:
                misses = 0
                continue
            if child is not watched:
                await self._health.close()  # the socket is the new process's
                watched = child
            # A process that is about to be given up gets longer: the node may just be very busy.
            unwell = local.unwell_since is not None
            answers = await self._answers(UNWELL_ANSWER_SECONDS if unwell else ANSWER_SECONDS)
            misses = 0 if answers else misses + 1
            if local.child is child and local.note_reach(ReachNote.read(self._brokers_file, child.pid)):
                self._changed()
            if local.child is not child or (local.healthy_since is not None and 0 < misses < MISSES):
                continue
            if local.note_health(answers, time.monotonic()):
                self._changed()
