"""How long a worker bears that its group has no coordinator."""

from __future__ import annotations

import math
from typing import Any

import pytest

from keelman.kafka.groups.coordinator import CoordinatorProblem
from keelman.worker import coordinators_reach
from keelman.worker.coordinators_reach import FORMING_SECONDS, SILENT_SECONDS, CoordinatorsReach


class Group:
    """A group's client whose coordinator has a problem."""

    def __init__(self, *, forming: bool) -> None:
        self._forming = forming

    async def problem(self, group: str = "", *, seconds: float) -> CoordinatorProblem | None:
        return CoordinatorProblem(f"{group} for {seconds} s", self._forming)


@pytest.mark.parametrize("consumers", ["", "connect-sink"])
@pytest.mark.parametrize(("forming", "longest"), [(False, SILENT_SECONDS), (True, FORMING_SECONDS)])
async def test_brokers_that_choose_a_coordinator_have_longer(
    monkeypatch: pytest.MonkeyPatch, consumers: str, *, forming: bool, longest: float
) -> None:
    now = 1000.0
    monkeypatch.setattr(coordinators_reach.time, "monotonic", lambda: now)
    group: Any = Group(forming=forming)
    reach = CoordinatorsReach(group, lambda: now if consumers else -math.inf, lambda: consumers)
    assert await reach.problem() is None
    now += longest - 1
    assert await reach.problem() is None
    now += 1
    note = await reach.problem()
    assert note is not None
    assert note.reason == ("CONSUMER_GROUP_UNREACHABLE" if consumers else "BROKERS_UNREACHABLE")
