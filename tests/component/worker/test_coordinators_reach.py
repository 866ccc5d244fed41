"""A worker notes that the coordinator of its group, or of its connector's consumers, is gone.

Other brokers answer meanwhile. A coordinator that moves to another broker is no problem.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.kafka.clients import Client, ClientError, low_level_client
from keelman.kafka.coordinator_lookup import GROUP, coordinator_of
from keelman.kafka.groups.coordinator import GROUPS_TOPIC
from keelman.kafka.groups.protocol import GroupClient
from keelman.model.errors import Unavailable
from keelman.worker import coordinators_reach
from keelman.worker.coordinators_reach import CoordinatorsReach
from keelman.workers.reach_note import ReachNote
from support.eventually import eventually
from support.kafka.three_brokers import Trio, three_brokers

pytestmark = pytest.mark.component
SILENT_SECONDS = 8.0
"""These brokers move a coordinator about 4 s after its loss, others after 9 s."""
LONG_SECONDS = 120.0
"""Longer than a busy machine needs for that."""
ALONE, REPLICATED = 1, 2
"""The coordinator that no other broker can replace, and a coordinator that another broker can."""


@pytest.fixture
async def trio(tmp_path: Path) -> AsyncIterator[Trio]:
    async with three_brokers(tmp_path, offsets_topic_num_partitions=2) as brokers:
        await asyncio.to_thread(brokers.create_groups, [REPLICATED], [ALONE])
        await brokers.move(GROUPS_TOPIC, (REPLICATED, 3))
        yield brokers


async def groups_of(client: Client) -> tuple[str, str]:
    """A group of each of the two coordinators."""

    async def found() -> tuple[str, str]:
        try:
            by_broker = {await coordinator_of(client, GROUP, f"group-{n}"): f"group-{n}" for n in range(8)}
        except ClientError as error:
            raise Unavailable(str(error)) from None
        return by_broker[ALONE], by_broker[REPLICATED]

    return await eventually(found, what="two brokers have groups")


async def answered(reach: CoordinatorsReach) -> None:
    """Waits until neither coordinator is a problem."""

    async def fine() -> bool:
        return await reach.problem() is None

    await eventually(fine, what="the coordinators answer")


async def noted(reach: CoordinatorsReach) -> ReachNote:
    """The problem, once it is noted."""
    return await eventually(reach.problem, what="a problem is noted")


async def test_a_coordinator_that_is_gone_is_noted_and_one_that_moves_is_not(
    trio: Trio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators_reach, "CONSUMERS_SECONDS", 0.5)
    monkeypatch.setattr(coordinators_reach, "SILENT_SECONDS", SILENT_SECONDS)
    async with low_level_client(
        {"bootstrap.servers": trio.bootstrap}, client_id="a-worker", timeout_ms=30_000
    ) as client:
        alone, replicated = await groups_of(client)

        def reaching(own: str, consumers: str) -> CoordinatorsReach:
            group = GroupClient(client, own, session_ms=10_000, rebalance_ms=10_000)
            return CoordinatorsReach(group, lambda: -math.inf, lambda: consumers)

        own, consumers, moves = reaching(alone, ""), reaching(replicated, alone), reaching(replicated, replicated)
        for item in (own, consumers, moves):
            await answered(item)
        trio.freeze(ALONE)
        begun = time.monotonic()
        try:
            first, second = await asyncio.gather(noted(own), noted(consumers))
            took = time.monotonic() - begun
            assert (first.reason, second.reason) == ("BROKERS_UNREACHABLE", "CONSUMER_GROUP_UNREACHABLE")
            assert all(f"coordinator of group {alone!r}" in note.message for note in (first, second)), (first, second)
            assert took >= SILENT_SECONDS - 1, "a coordinator has time to move"
        finally:
            trio.thaw(ALONE)
        await asyncio.gather(answered(own), answered(consumers), answered(moves))

        monkeypatch.setattr(coordinators_reach, "SILENT_SECONDS", LONG_SECONDS)
        trio.freeze(REPLICATED)
        try:
            problems = list[ReachNote]()

            async def moved() -> bool:
                problems.extend(filter(None, [await moves.problem()]))
                return await coordinator_of(client, GROUP, replicated) != REPLICATED

            await eventually(moved, every=0.1, what="another broker is the coordinator")
            monkeypatch.setattr(coordinators_reach, "SILENT_SECONDS", 0.0)
            await answered(moves)
        finally:
            trio.thaw(REPLICATED)
        assert not problems, "it had time to move"
