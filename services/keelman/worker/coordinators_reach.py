"""Has a worker notice that the coordinator of a group is out of its reach, though other brokers are not."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable

from keelman.kafka.groups.coordinator import CoordinatorProblem
from keelman.kafka.groups.protocol import GroupClient
from keelman.model.workload import BROKERS_UNREACHABLE, CONSUMER_GROUP_UNREACHABLE
from keelman.workers.reach_note import ReachNote

SILENT_SECONDS = 15.0
"""The time for which a coordinator may be silent: some 9 s after it has gone its brokers choose another."""
FORMING_SECONDS = 180.0
"""The time for which brokers that answer may be without a coordinator: new ones create the topic of groups first."""
ASK_SECONDS = 3.0
CONSUMERS_SECONDS = 5.0
"""The interval of queries to the coordinator of a consumer group while it answers: the worker has no other signs of
it."""


class CoordinatorsReach:
    """The coordinators of the worker's own group and of the consumer group of its only connector. Of many connectors
    one without its coordinator does not keep the others from copying."""

    def __init__(self, group: GroupClient, heard: Callable[[], float], consumers: Callable[[], str]) -> None:
        """`heard` returns the time of the last message of the coordinator of `group`, the worker's own, by the
        monotonic clock; `consumers` the consumer group of its only connector, empty for none."""
        self._group, self._heard, self._consumers = group, heard, consumers
        self._answered = self._answered_consumers = time.monotonic()
        self._consumer_group = ""
        self._asked = -math.inf

    async def problem(self) -> ReachNote | None:
        """Returns why a coordinator does not answer; None where both do, or have not been silent for long."""
        return await self._of_own_group() or await self._of_consumers()

    async def _of_own_group(self) -> ReachNote | None:
        silent = time.monotonic() - max(self._answered, self._heard())
        if silent < SILENT_SECONDS:
            return None
        if problem := await self._group.problem(seconds=ASK_SECONDS):
            return ReachNote(os.getpid(), BROKERS_UNREACHABLE, problem.text) if _lasts(problem, silent) else None
        self._answered = time.monotonic()
        return None

    async def _of_consumers(self) -> ReachNote | None:
        begun = time.monotonic()
        if begun - self._asked < CONSUMERS_SECONDS:
            return None
        if (group := self._consumers()) != self._consumer_group or not group:
            self._consumer_group, self._answered_consumers = group, begun
        problem = await self._group.problem(group, seconds=ASK_SECONDS) if group else None
        if problem is None:
            self._asked, self._answered_consumers = begun, begun
        elif _lasts(problem, begun - self._answered_consumers):
            return ReachNote(os.getpid(), CONSUMER_GROUP_UNREACHABLE, problem.text)
        return None


def _lasts(problem: CoordinatorProblem, silent: float) -> bool:
    return silent >= (FORMING_SECONDS if problem.forming else SILENT_SECONDS)
