"""A session is dead when slots wait and no executor answers; a service goes on with another one for ever."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from keelman.model.errors import Unavailable
from keelman.runtime.processes.ports import free_ports
from keelman.spark.masters.liveness import FIRST_SECONDS, MOST_SECONDS, RESTARTED_SECONDS, Liveness
from keelman.spark.masters.master_line import MasterLine
from keelman.spark.masters.restarted_spark import MAX_FAILURES, RestartedSpark
from keelman.workers.spark_master import Master
from support.eventually import eventually


@dataclass
class World:
    now: float = 100.0
    liveness: Liveness = field(init=False)

    def __post_init__(self) -> None:
        self.liveness = Liveness(lambda: self.now)
        self.liveness.begin(0)

    def lives(
        self, *, executors: int = 0, jobs: int = 1, attached: int = 0, returns: int = 0, most: int = 1_000
    ) -> int:
        """For how many seconds the session lives, `most` at most."""
        for second in range(most):
            if self.liveness.note(executors=executors, jobs=jobs, attached=attached, returns=returns):
                return second
            self.now += 1
        return most


def test_a_session_without_executors_is_given_up_ever_later() -> None:
    world = World()
    lives = []
    for _ in range(6):
        lives.append(world.lives())
        world.liveness.begin(0)
    assert lives == [FIRST_SECONDS, 40, 80, 160, MOST_SECONDS, MOST_SECONDS]
    world.liveness.note(executors=1, jobs=1, attached=0, returns=0)
    assert world.lives() == FIRST_SECONDS, "an executor was there"


def test_it_is_given_up_at_once_when_its_master_was_away() -> None:
    world = World()
    assert world.lives(executors=1, attached=1, returns=1, most=99) == 99, "slots that run go on"
    assert world.lives(jobs=0, returns=1, most=99) == 99, "nobody waits"
    assert world.lives(returns=1) == RESTARTED_SECONDS
    world.liveness.begin(1)
    assert world.lives(returns=1) == FIRST_SECONDS, "the next one knows that master"


def test_executors_that_are_about_to_go_with_their_slots_do_not_delay_that() -> None:
    world = World()
    assert world.lives(executors=2, returns=1) == RESTARTED_SECONDS
    world = World()
    assert world.lives(executors=2, most=99) == 99, "without a return they have slots to start"


def test_the_addresses_of_masters() -> None:
    assert Master.of("spark://a:7000,b").addresses == (("a", 7000), ("b", 7077))
    assert Master.of("sc://[::1]:15003/;token=x:1").addresses == (("::1", 15003),)
    assert Master.of("local[4,1]").addresses == ()


@contextlib.asynccontextmanager
async def listening(port: int) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """A master of which only the port is there; its connections."""
    writers: list[asyncio.StreamWriter] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(OSError):
            await reader.read()

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    try:
        yield writers
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await server.wait_closed()


async def test_a_line_tells_whether_the_master_answers_and_counts_its_returns() -> None:
    port = free_ports(1)[0]
    line = MasterLine([("127.0.0.1", port)])
    assert "Connect call failed" in await line.refusal() or "refused" in await line.refusal()
    async with asyncio.TaskGroup() as tasks:
        holds = tasks.create_task(line.hold())
        async with listening(port) as connections:
            await eventually(lambda: connections, what="it holds a connection")
            assert line.returns == 0, "it was never away"
            assert await line.refusal() == ""
            assert await MasterLine([("127.0.0.1", 1), ("127.0.0.1", port)]).refusal() == "", "one is enough"
        await eventually(lambda: line.away, what="the line knows that it is away")
        async with listening(port):
            await eventually(lambda: line.returns == 1, what="it was away and is back")
        holds.cancel()


class OneLife:
    """A life of Spark that is lost at once."""

    shortage = cores = None

    async def lost(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        raise Unavailable("gone", reason="SPARK_LOST")


def restarted(line: MasterLine, lives: list[int], broken: bool = False) -> RestartedSpark:
    @contextlib.asynccontextmanager
    async def start() -> AsyncIterator[Any]:
        lives.append(1)
        if broken:
            raise Unavailable("broken", reason="SPARK_LOST")
        yield cast("Any", OneLife())

    return RestartedSpark(start, line)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keelman.spark.masters.restarted_spark.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("keelman.spark.masters.restarted_spark.FIRST_SECONDS", 0.001)


@pytest.mark.parametrize("broken", [True, False])
async def test_a_service_of_a_cluster_tries_for_ever_and_tells_why(broken: bool) -> None:
    port = free_ports(1)[0]
    lives: list[int] = []
    spark = restarted(MasterLine([("127.0.0.1", port)]), lives, broken)
    task = asyncio.create_task(spark.live(lambda: None, lambda: 0))
    await asyncio.wait_for(spark.up.wait(), 10)
    assert "SPARK_LOST: the Spark master does not answer: 127.0.0.1" in spark.problem
    assert lives == [], "no virtual machine is started for a master that is away"
    async with listening(port):
        await eventually(lambda: len(lives) > MAX_FAILURES, what="it goes on")
    assert not task.done()
    task.cancel()


async def test_a_local_spark_that_fails_again_and_again_ends_the_service() -> None:
    lives: list[int] = []
    with pytest.raises(Unavailable, match="gone"):
        await asyncio.wait_for(restarted(MasterLine([]), lives).live(lambda: None, lambda: 0), 20)
    assert len(lives) == MAX_FAILURES
    with pytest.raises(Unavailable, match="broken"):
        await restarted(MasterLine([]), lives, broken=True).live(lambda: None, lambda: 0)
