"""Tables that are followed together: each takes its topic's records; a refused topic does not delay the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from keelman.kafka.fetching.fetched import Fetched
from keelman.kafka.fetching.pauses import Pauses
from keelman.kafka.fetching.position_checks import FetchFailure
from keelman.kafka.fetching.settings import FetchSettings
from keelman.kafka.tables.following import TopicTables
from keelman.kafka.tables.table import NewestRows, Row, TopicTable
from keelman.model.errors import PermissionDenied
from keelman.runtime.supervise import Siblings, first_of

REFUSED = "topic b may not be read: TOPIC_AUTHORIZATION_FAILED"


class Fetcher:
    """Returns one empty batch per topic, then waits; raises FetchFailure at once for a refused topic."""

    def __init__(self, topics: Sequence[str], refused: Sequence[str], problem: str) -> None:
        self._topics, self.problem = list(topics), problem
        self.pauses = Pauses(FetchSettings())
        self._fails = any(topic in refused for topic in topics)

    async def next(self, seconds: float) -> list[Fetched]:
        if self._fails:
            raise FetchFailure(29, REFUSED)
        if not self._topics:
            await asyncio.Event().wait()
        return [Fetched(self._topics.pop(0), 0, [], 0, 7, 7)]

    def partitions_of(self, topic: str) -> int:
        return 1

    def heard_at(self, topic: str) -> float:
        return 1e12

    async def close(self) -> None:
        """Has no connections to close."""


class Together(TopicTables):
    """Tables that use the test's fetchers."""

    def __init__(self, tables: Sequence[TopicTable], refused: Sequence[str] = (), problem: str = "") -> None:
        super().__init__(tables, {}, client_id="c", read_committed=True)
        self.made: list[tuple[str, ...]] = []
        self._refused, self._problem = refused, problem

    def _fetcher(self, tables: Sequence[TopicTable]) -> Any:
        topics = tuple(table.topic for table in tables)
        self.made.append(topics)
        return Fetcher(topics, self._refused, self._problem)


def tables(*topics: str) -> list[TopicTable]:
    return [TopicTable(topic, 1, lambda _: None) for topic in topics]


async def test_each_takes_what_is_of_its_topic() -> None:
    three = tables("a", "b", "c")
    together = Together(three)
    async with asyncio.timeout(30):
        await first_of(together.follow(), three[2].read_to({0: 7}))
    assert [table.positions for table in three] == [{0: 7}] * 3
    assert together.made == [("a", "b", "c")]
    assert three[0].heard_at == 1e12, "also when it has no readers any more"


async def test_one_that_is_refused_keeps_no_other_waiting() -> None:
    a, b, c = tables("a", "b", "c")
    together = Together([a, b, c], refused=["b"])
    async with asyncio.timeout(30), Siblings() as siblings:
        siblings.start(together.follow())
        await a.read_to({0: 7})
        await c.read_to({0: 7})
        with pytest.raises(PermissionDenied, match="out of topic b"):
            await b.kept_out()
    assert together.made[0] == ("a", "b", "c")
    assert set(together.made[1:]) == {("a",), ("b",), ("c",)}


@pytest.mark.parametrize(
    ("problem", "whose"),
    [
        ("partition 0 of topic b has no leader", ["b"]),
        ("broker 1 does not answer", ["a", "b", "c"]),
        ("", []),
    ],
)
async def test_a_problem_is_that_of_the_topic_that_it_names(problem: str, whose: list[str]) -> None:
    three = tables("a", "b", "c")
    together = Together(three, problem=problem)
    async with asyncio.timeout(30):
        await first_of(together.follow(), three[2].read_to({0: 7}))
    results = []
    for table in three:
        try:
            await table.read_to({0: 8}, seconds=0.0)
        except Exception as error:
            results += [table.topic] if problem and problem in str(error) else []
    assert results == whose


def test_of_a_key_in_two_partitions_the_newest_row_is_taken_and_in_one_the_last() -> None:
    newest = NewestRows()

    def takes(partition: int, time_ms: int, key: bytes = b"k") -> bool:
        return newest.takes(Row(partition, 0, key, None, time_ms))

    assert [takes(0, 5), takes(0, 3), takes(1, 2), takes(1, 3), takes(0, 9)] == [True, True, False, True, True]
    assert takes(1, 8) is False
    assert takes(1, 1, b"another") is True
