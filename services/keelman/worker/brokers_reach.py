"""Has a worker notice that its brokers, or other services that it needs, are out of its reach, and note it for its
agent: state may reach them."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from keelman.kafka.cluster_state import kafka_cluster_id
from keelman.model.errors import KeelmanError, Unauthenticated
from keelman.model.workload import BROKERS_REFUSE, BROKERS_UNREACHABLE
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.runtime.ticks import tick
from keelman.workers.reach_note import ReachNote

log = get_logger()
SILENT_SECONDS = 10.0
"""The time for which brokers may be silent: one that restarts takes some seconds."""
ASK_SECONDS = 3.0
LOOK_SECONDS = 1.0
Problem: TypeAlias = Callable[[], Awaitable[ReachNote | None]]


class BrokersReach:
    """Keeps the note. When the brokers have been silent for SILENT_SECONDS they are queried: the answer is the cause.
    While they answer, the other services that a worker needs are checked in turn."""

    def __init__(self, file: Path | None, properties: Mapping[str, str], *, client_id: str) -> None:
        """`file` is the note's, None for none."""
        self._file, self._properties, self._client_id = file, properties, client_id
        self._heard: Callable[[], float] | None = None
        self._others: Sequence[Problem] = ()
        self._noted: ReachNote | None = None

    def follow(self, heard: Callable[[], float], *others: Problem) -> None:
        """Watches others from now on: `heard` returns the time of the brokers' last message, by the monotonic clock,
        and each of `others` why another needed service does not answer."""
        self._heard, self._others = heard, others

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[BrokersReach]:
        """Watches within the block."""
        if self._file is None:
            yield self
            return
        try:
            async with Siblings() as siblings:
                siblings.start(self._watch(self._file), name="brokers' reach")
                yield self
        finally:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)

    async def _watch(self, file: Path) -> None:
        answered, problem = time.monotonic(), None
        while True:
            heard = -math.inf if self._heard is None else self._heard()
            if time.monotonic() - max(answered, heard) < SILENT_SECONDS:
                problem = None
            elif (problem := await self._problem()) is None:
                answered = time.monotonic()
            for other in self._others:
                problem = problem or await other()
            if problem != self._noted:
                with contextlib.suppress(OSError):  # it is tried again
                    self._note(file, problem)
            await tick(LOOK_SECONDS)

    def _note(self, file: Path, problem: ReachNote | None) -> None:
        if problem is None:
            file.unlink(missing_ok=True)
            log.info("all_in_reach")
        else:
            problem.write(file)
            log.warning("out_of_reach", reason=problem.reason, error=problem.message)
        self._noted = problem

    async def _problem(self) -> ReachNote | None:
        """Returns why the brokers do not answer; None where they do. Tries silent brokers twice: where processors are
        short an answer may be late once."""
        problem = await self._asked()
        return await self._asked() if problem is not None and problem.reason == BROKERS_UNREACHABLE else problem

    async def _asked(self) -> ReachNote | None:
        try:
            await kafka_cluster_id(self._properties, seconds=ASK_SECONDS, client_id=self._client_id)
        except KeelmanError as error:
            reason = BROKERS_REFUSE if isinstance(error, Unauthenticated) else BROKERS_UNREACHABLE
            return ReachNote(os.getpid(), reason, error.message)
        return None
