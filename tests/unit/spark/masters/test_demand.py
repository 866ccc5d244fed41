"""A standby has Spark only while it has workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from keelman.runtime.processes.ports import free_ports
from keelman.spark.masters.demand import Demand
from keelman.spark.masters.master_line import MasterLine
from keelman.spark.masters.restarted_spark import RestartedSpark
from support.eventually import eventually


class FakeClock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def test_spark_is_wanted_from_the_first_user_until_there_was_none_for_the_idle_time() -> None:
    clock = FakeClock()
    demand = Demand(60.0, clock)
    demand.note(0)
    clock.advance(1_000)
    demand.note(0)
    assert (demand.is_wanted, demand.over.is_set()) == (False, True)
    demand.note(1)
    assert (demand.is_wanted, demand.over.is_set()) == (True, False)
    demand.note(0)
    clock.advance(59)
    demand.note(1)
    demand.note(0)
    clock.advance(59)
    demand.note(0)
    assert demand.is_wanted, "a user came in between"
    clock.advance(1)
    demand.note(0)
    assert (demand.is_wanted, demand.over.is_set()) == (False, True)
    demand.note(2)
    assert demand.is_wanted, "and again"


def test_spark_of_a_node_is_always_wanted() -> None:
    clock = FakeClock()
    demand = Demand(None, clock)
    clock.advance(1_000)
    demand.note(0)
    assert (demand.is_wanted, demand.over.is_set()) == (True, False)


class Life:
    """A life of Spark without an end of its own."""

    shortage = cores = None

    async def lost(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        await asyncio.Event().wait()


async def test_a_standby_starts_and_ends_spark_as_it_is_wanted() -> None:
    clock, lives, may_start = FakeClock(), list[str](), asyncio.Event()

    @contextlib.asynccontextmanager
    async def start() -> AsyncIterator[Any]:
        await may_start.wait()
        lives.append("begun")
        yield cast("Any", Life())
        lives.append("over")

    demand = Demand(60.0, clock)
    spark = RestartedSpark(start, MasterLine(()), demand)
    keeps = asyncio.ensure_future(spark.live(lambda: None, lambda: 0))
    async with asyncio.timeout(10):
        await spark.up.wait()
    assert (lives, spark.problem) == ([], ""), "a standby is well without Spark"
    demand.note(1)
    await eventually(lambda: spark.problem.startswith("SPARK_STARTING: "), what="the link says why nothing runs")
    may_start.set()
    await eventually(lambda: lives == ["begun"] and spark.problem == "")
    demand.note(0)
    clock.advance(60)
    demand.note(0)
    await eventually(lambda: lives == ["begun", "over"], what="its application has ended")
    assert spark.problem == ""
    demand.note(1)
    await eventually(lambda: lives[2:] == ["begun"], what="it starts again")
    keeps.cancel()


async def test_a_standby_whose_master_does_not_answer_says_so_before_it_is_needed() -> None:
    @contextlib.asynccontextmanager
    async def start() -> AsyncIterator[Any]:
        yield cast("Any", Life())

    spark = RestartedSpark(start, MasterLine([("127.0.0.1", free_ports(1)[0])]), Demand(60.0))
    keeps = asyncio.ensure_future(spark.live(lambda: None, lambda: 0))
    await eventually(lambda: spark.problem.startswith("SPARK_LOST: the Spark master does not answer"))
    keeps.cancel()
