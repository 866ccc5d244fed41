"""Parts of a data set: a few at a time, one after another under the same producer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import BulkPart, RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import Bulk, StartTicket
from keelman.connect.config.providers import ConfigProviderError
from keelman.worker.tasks.bulk import TaskParts
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.run_handle import RunHandle
from keelman.worker.tasks.task_host import PartHost


class World:
    """Parts, and the orders that they sent."""

    def __init__(self, tickets: int = 100) -> None:
        self.sent: list[RunOrder] = []
        self.tickets = tickets
        self.problem: Exception | None = None
        self.fenced: list[int] = []
        duties = PartHost(self.ticket, self.answer, self.fence, lambda uid: None, lambda: False)
        link = cast("SparkLink", self)
        self.parts = TaskParts(link, asyncio.Event(), set(), duties, grace_seconds=0.01)

    def send(self, order: RunOrder) -> None:
        self.sent.append(order)

    def ticket(self, uid: str) -> StartTicket | None:
        if self.problem is not None:
            raise self.problem
        self.tickets -= 1
        return StartTicket(run_uid=uid, transactional_id="g-c-0") if self.tickets >= 0 else None

    async def answer(self, run: RunHandle) -> None:
        return None

    async def fence(self, count: int) -> bool:
        self.fenced.append(count)
        return True

    def begin(self, count: int, slots: int) -> RunUpdate | None:
        parts = [BulkPart(task_config={"part": str(number)}) for number in range(count)]
        return self.parts.begin(parts, Bulk(slots=slots, data=True))

    @property
    def begun(self) -> Sequence[tuple[str, str]]:
        starts = [order.start for order in self.sent if order.HasField("start")]
        return [(start.task_config["part"], start.transactional_id) for start in starts]

    def tell(self, number: int, state: Any, reason: str = "") -> None:
        run = self.parts.runs[number]
        run.update(RunUpdate(run_uid=run.uid, state=state, reason=reason))


async def test_the_next_part_follows_one_that_is_over_with_its_producer() -> None:
    world = World()
    assert world.begin(3, slots=3) is None
    assert world.begun == [("0", "g-c-0-b1"), ("1", "g-c-0-b2")]
    world.tell(1, states.COPY_RUN_STATE_ENDED, "ALL_READ")
    assert await world.parts.follow() is None
    assert world.begun[2:] == [("2", "g-c-0-b2")]
    assert not world.parts.caught_up
    for number in range(2):
        world.tell(number, states.COPY_RUN_STATE_ENDED, "ALL_READ")
    assert await world.parts.follow() is None
    assert world.parts.caught_up
    assert await world.parts.finish("WHOLE")
    assert (world.fenced, len(world.begun)) == ([], 3)


async def test_what_was_cut_is_fenced_and_what_waits_is_forgotten() -> None:
    world = World()
    world.begin(9, slots=3)
    world.tell(0, states.COPY_RUN_STATE_ENDED, "ALL_READ")
    await world.parts.follow()
    for number in range(2):
        world.tell(number, states.COPY_RUN_STATE_ENDED, "PART_FAILED")
    assert await world.parts.finish("PART_FAILED")
    assert world.fenced == [2]
    assert not world.parts.runs
    assert len(world.begun) == 3


@pytest.mark.parametrize("tickets", [1, 2])
async def test_without_a_ticket_for_a_part_the_task_ends(tickets: int) -> None:
    world = World(tickets)
    last = world.begin(3, slots=3)
    if last is None:
        world.tell(0, states.COPY_RUN_STATE_ENDED, "ALL_READ")
        last = await world.parts.follow()
    assert last is not None
    assert (last.reason, last.retriable) == ("WITHDRAWN", True)


async def test_a_part_that_ends_before_its_end_ends_the_task() -> None:
    world = World()
    world.begin(2, slots=3)
    world.tell(0, states.COPY_RUN_STATE_ENDED, "DRAINED")
    last = await world.parts.follow()
    assert last is not None
    assert last.retriable


async def test_a_secret_that_cannot_be_read_makes_no_ticket_for_a_part() -> None:
    world = World()
    world.problem = ConfigProviderError("no such file")
    last = world.begin(2, slots=3)
    assert last is not None
    assert (last.reason, last.message, last.retriable) == ("WITHDRAWN", "no such file", True)
