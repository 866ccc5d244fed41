"""Changes that wait for the leader: which are written together, and the result of each."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, cast

import pytest

from keelman.kafka.writer import MAX_BYTES, Record, check_sizes
from keelman.model.errors import Conflict, DeadlineExceeded, Exhausted, KeelmanError, Unavailable
from keelman.runtime.supervise import Siblings
from keelman.worker.errors import RestError
from keelman.worker.group.requests import MAX_TOGETHER, DecidedChange, Request, WaitingRequests, taken
from keelman.worker.storage.config_topic import ConfigTopic

LATER = 60.0


class Topic:
    """The config topic as a leader's store writes it: each write is one list of keys."""

    def __init__(self, problem: KeelmanError | None = None) -> None:
        self.problem = problem
        self.is_current = False
        self.claimed = True
        self.writes: list[list[bytes]] = []
        self.reads = 0

    async def read(self, *, since: float = math.inf) -> None:
        self.reads += 1

    async def claim_if_lost(self) -> bool:
        before, self.claimed = self.claimed, True
        return not before

    async def write(self, written: Sequence[Record]) -> None:
        check_sizes(written)
        if self.problem is not None:
            raise self.problem
        self.writes.append([key for key, _ in written])


def change(name: str, *, size: int = 1, seconds: float = LATER) -> Request:
    def decide() -> DecidedChange[str]:
        if name == "refused":
            raise RestError(409, "Connector refused already exists")
        return DecidedChange([(name.encode(), b"x" * size)], lambda: f"{name} written")

    return Request(time.monotonic() + seconds, connector=name, decide=decide)


def doing() -> Request:
    async def do() -> str:
        return "done"

    return Request(time.monotonic() + LATER, do)


async def served(topic: Topic, *requests: Request) -> list[Any]:
    """The result of each request, once all have been served."""
    queue = WaitingRequests(cast(ConfigTopic, topic), lambda: None)
    async with Siblings() as siblings:
        waits = [siblings.start(outcome(queue, request)) for request in requests]
        await asyncio.sleep(0)
        while queue:
            await queue.serve()
        return [await wait for wait in waits]


async def outcome(queue: WaitingRequests, request: Request) -> Any:
    try:
        return await queue.done(request)
    except Exception as error:
        return error


async def test_what_is_taken_together() -> None:
    a, b, c, again, other = (change(name) for name in ("a", "b", "c", "a", "d"))
    do, late = doing(), change("late", seconds=-1)
    waiting = deque([a, late, b, c, again, other, do, change("e")])
    assert taken(waiting) == (a, b, c), "the second change of a is decided by the result of the first"
    assert taken(waiting) == (again, other)
    assert taken(waiting) == (do,)
    assert len(waiting) == 1
    many = deque(change(str(n)) for n in range(MAX_TOGETHER + 1))
    assert len(taken(many)) == MAX_TOGETHER


async def test_those_that_wait_are_one_write_and_each_is_answered() -> None:
    topic = Topic()
    answers = await served(topic, change("a"), change("b"), change("refused"), change("c"))
    assert topic.writes == [[b"a", b"b", b"c"]]
    assert topic.reads == 1
    assert [answers[0], answers[1], answers[3]] == ["a written", "b written", "c written"]
    assert isinstance(answers[2], RestError)


async def test_a_leader_that_knows_the_topic_reads_only_for_who_is_refused() -> None:
    topic = Topic()
    topic.is_current = True
    assert await served(topic, change("a"), change("b")) == ["a written", "b written"]
    assert topic.reads == 0
    await served(topic, change("a"), change("refused"))
    assert topic.reads == 1
    assert topic.writes == [[b"a", b"b"], [b"a"]]


async def test_one_that_is_too_large_is_alone_with_that() -> None:
    topic = Topic()
    answers = await served(topic, change("a"), change("large", size=MAX_BYTES), change("b"))
    assert topic.writes == [[b"a"], [b"b"]]
    assert [answers[0], answers[2]] == ["a written", "b written"]
    assert isinstance(answers[1], Exhausted)
    assert f"larger than {MAX_BYTES}" in answers[1].message


async def test_what_another_wrote_before_the_claim_was_made_anew_decides() -> None:
    topic, taken_names = Topic(), {"a"}
    topic.claimed = False

    async def read(*, since: float = math.inf) -> None:
        topic.reads += 1
        if topic.claimed:
            taken_names.add("b")  # another leader wrote it after the read before and before the claim

    def creation(name: str) -> Request:
        def decide() -> DecidedChange[str]:
            if name in taken_names:
                raise RestError(409, f"Connector {name} already exists")
            return DecidedChange([(name.encode(), b"x")], lambda: f"{name} written")

        return Request(time.monotonic() + LATER, connector=name, decide=decide)

    topic.read = read  # type: ignore[method-assign]
    answers = await served(topic, creation("a"), creation("b"), creation("c"))
    assert topic.writes == [[b"c"]]
    assert [type(answer) for answer in answers] == [RestError, RestError, str]


async def test_behind_one_that_is_too_large_brokers_that_are_gone_are_waited_for_once() -> None:
    topic, tried = Topic(), []

    async def write(written: Sequence[Record]) -> None:
        tried.append(len(written))
        raise Exhausted("too large") if len(written) > 1 else Unavailable("no broker")

    topic.write = write  # type: ignore[method-assign]
    answers = await served(topic, *(change(name) for name in "abcd"))
    assert tried == [4, 1]
    assert all(isinstance(answer, Unavailable) for answer in answers)


async def test_who_leads_no_more_writes_for_nobody() -> None:
    answers = await served(Topic(Conflict("another worker has claimed")), change("a"), change("b"))
    assert all(isinstance(answer, Conflict) for answer in answers)


async def test_one_whose_time_is_up_when_the_topic_is_read_is_not_written() -> None:
    topic, slow = Topic(), change("slow")

    async def read(*, since: float) -> None:
        slow.until = time.monotonic() - 1

    topic.read = read  # type: ignore[method-assign]
    answers = await served(topic, slow, change("b"))
    assert topic.writes == [[b"b"]]
    assert isinstance(answers[0], DeadlineExceeded)


async def test_what_only_asks_writes_nothing() -> None:
    topic = Topic()
    asks = Request(time.monotonic() + LATER, connector="a", decide=lambda: DecidedChange((), lambda: "known"))
    assert await served(topic, asks) == ["known"]
    assert not topic.writes


@pytest.mark.parametrize("error", [ValueError("a fault of ours"), RestError(500, "x")])
async def test_a_fault_reaches_who_asked(error: Exception) -> None:
    async def do() -> None:
        raise error

    assert await served(Topic(), Request(time.monotonic() + LATER, do)) == [error]
