"""Partitions that come and go one by one, or all at once: commits, calls to the writer, and offsets read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from keelman.connect.plugin import KeptOffset, Writer
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.engine.control import Control
from keelman.engine.progress import Progress
from keelman.engine.sink.assignment import SinkAssignment
from keelman.engine.sink.commit_clock import CommitClock
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.offsets import GroupOffset, Start
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.source_topics import SourceTopics
from keelman.engine.sink.positions.start import Begun
from keelman.engine.sink.steering import Steering
from keelman.runtime.logs.logging import get_logger

CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
CONFIG = {"name": "c", "key.converter": CONVERTER, "value.converter": CONVERTER}
OFFSETS = {0: 10, 1: 20, 2: 30}
"""The group's offset of each partition."""


def places(*numbers: int) -> list[ClientPartition]:
    return [ClientPartition("t", number) for number in numbers]


class World(Writer):
    """A sink's assignment with its arguments; it also serves as the writer, the consumer and the start positions."""

    def __init__(self, *, as_connect: bool) -> None:
        self.commits_on_time = as_connect
        self.said: list[str] = []
        self.wants: dict[int, int] = {}
        self.safe: dict[TopicPartition, int] | None = None
        self.positions = Positions()
        control, consumer = Control(), Consumed(self.said)
        pipeline = SinkPipeline("c", 0, {"bootstrap.servers": "none:1"}, CONFIG, control)
        polling = Polling(consumer, self.positions, 30.0)  # type: ignore[arg-type]
        topics, progress = SourceTopics({}, lambda: None), Progress()
        self.polling, self.topics = polling, topics
        self.commits = SinkCommits(
            control,
            consumer=consumer,  # type: ignore[arg-type]
            writer=self,
            pipeline=pipeline,
            positions=self.positions,
            polling=polling,
            topics=topics,
            progress=progress,
            clock=CommitClock(60.0),
        )
        self.steering = Steering(control, pipeline, lambda: polling, lambda: self.commits)
        self.assignment = SinkAssignment(
            consumer,  # type: ignore[arg-type]
            writer=self,
            pipeline=pipeline,
            positions=self.positions,
            polling=polling,
            commits=self.commits,
            topics=topics,
            beginnings=self,  # type: ignore[arg-type]
            place=self,  # type: ignore[arg-type]
            subscription=self,  # type: ignore[arg-type]
            reset=self,  # type: ignore[arg-type]
            steering=self.steering,
            progress=progress,
            log=get_logger(),
        )
        self.look: Any = None
        self.assignment.subscribe()

    def begin(self, _consumer: Any, assigned: Any, revoked: Any, lost: Any) -> None:
        self.given = lambda *numbers: assigned(None, places(*numbers))
        self.taken = lambda *numbers: revoked(None, places(*numbers))

    def given_up(self, *_about: Any) -> bool:
        return False

    def of(self, _consumer: Any, _writer: Writer, partitions: list[ClientPartition]) -> list[Begun]:
        return [
            Begun(TopicPartition("t", p.partition), GroupOffset(at), Start(at), f"id{p.partition}")
            for p in partitions
            for at in [OFFSETS[p.partition]]
        ]

    def moved(self, number: int, offset: int) -> None:
        self.positions.move(TopicPartition("t", number), offset)

    def told(self) -> list[str]:
        calls = list(self.said)
        self.said.clear()
        return calls

    def assigned(self, partitions: Mapping[TopicPartition, int | None]) -> None:
        self.said.append("assigned " + " ".join(f"{p.partition}@{at}" for p, at in partitions.items()))
        for number, offset in self.wants.items():
            self.steering.seek(TopicPartition("t", number), offset)

    def hand_over(self) -> None:
        self.said.append("handed over")

    def committable(self) -> Mapping[TopicPartition, int] | None:
        return self.safe

    def write(self, batch: SinkBatch) -> None:
        raise AssertionError("nothing is read here")

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        self.said.append("kept " + " ".join(f"{p.partition}@{offset.offset}" for p, offset in offsets.items()))


class Consumed:
    """A consumer that records its calls."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def _note(self, word: str, partitions: list[ClientPartition]) -> None:
        self._said.append(f"{word} " + " ".join(f"{p.partition}@{p.offset}" for p in partitions))

    def assign(self, partitions: list[ClientPartition]) -> None:
        self._note("reads", partitions)

    def incremental_assign(self, partitions: list[ClientPartition]) -> None:
        self._note("reads too", partitions)

    def commit(self, *, offsets: list[ClientPartition], asynchronous: bool) -> None:
        self._note("group", offsets)

    def pause(self, partitions: list[ClientPartition]) -> None:
        self._said.append("pauses " + " ".join(str(p.partition) for p in partitions))

    def resume(self, partitions: list[ClientPartition]) -> None:
        self._said.append("resumes " + " ".join(str(p.partition) for p in partitions))


def test_a_writer_that_is_called_as_connect_calls_hears_of_those_that_change_hands_alone() -> None:
    world = World(as_connect=True)
    world.given(0, 1)
    assert world.told() == ["assigned 0@10 1@20", "reads 0@10 1@20"]
    world.moved(0, 15)
    world.moved(1, 22)
    world.taken(1)
    assert world.told() == ["kept 1@22", "group 0@15 1@22", "assigned 0@15", "reads 0@15"]
    world.given()
    assert world.told() == [], "nothing has changed"
    world.moved(0, 16)
    world.given(2)
    assert world.told() == ["assigned 0@16 2@30", "reads too 2@30"]
    world.taken(0, 2)
    assert world.told() == ["kept 0@16 2@30", "group 0@16 2@30", "handed over"]
    assert not world.positions
    world.given()
    assert world.told() == ["assigned ", "reads "]


def test_one_that_is_not_commits_all_and_begins_anew_with_what_is_left_and_what_has_come() -> None:
    world = World(as_connect=False)
    world.given(0, 1)
    world.told()
    world.moved(0, 15)
    world.taken(1)
    assert world.told() == ["kept 0@15 1@20", "group 0@15 1@20", "handed over", "assigned 0@10", "reads 0@10"]
    world.given()
    assert world.told() == []
    world.given(2)
    assert world.told() == ["kept 0@10", "group 0@10", "handed over", "assigned 0@10 2@30", "reads 0@10 2@30"]


@pytest.mark.parametrize("as_connect", [True, False])
def test_where_all_change_hands_at_once_each_rebalance_ends_all_and_begins_all(as_connect: bool) -> None:
    world = World(as_connect=as_connect)
    world.given(0, 1)
    world.told()
    world.taken(0, 1)
    world.given(0)
    assert world.told() == ["kept 0@10 1@20", "group 0@10 1@20", "handed over", "assigned 0@10", "reads 0@10"]


def test_what_comes_is_read_where_its_writer_wants_and_paused_while_all_are() -> None:
    world = World(as_connect=True)
    world.given(0)
    world.polling.pause()
    world.told()
    world.wants = {1: 25, 0: 3}
    world.given(1)
    assert world.told() == ["assigned 0@10 1@20", "reads too 1@25", "pauses 0 1"]
    world.assignment.follow()
    assert world.told()[:1] == ["reads 0@3 1@25"], "the present offsets go back once the read records are written"


def test_what_a_writer_has_paused_of_those_that_go_is_forgotten() -> None:
    world = World(as_connect=True)
    world.given(0, 1)
    world.polling.hold([TopicPartition("t", 0), TopicPartition("t", 1)])
    world.told()
    world.taken(1)
    assert "resumes 1" in world.told()
    world.given(1)
    assert world.told()[-1] == "pauses 0"


def test_batches_that_wait_are_given_up_where_some_go_and_not_where_some_come() -> None:
    world = World(as_connect=True)
    world.given(0, 1)
    before = world.positions.assignments
    world.given(2)
    assert world.positions.assignments == before
    world.taken(2)
    assert world.positions.assignments > before


def test_how_far_the_group_may_go_is_forgotten_with_what_goes() -> None:
    world = World(as_connect=True)
    world.given(0, 1)
    world.safe = {TopicPartition("t", 0): 10, TopicPartition("t", 1): 20}
    world.taken(1)
    world.told()
    world.given(1)
    world.commits.send_group(asynchronous=True)
    assert world.told()[-1] == "group 0@10"


def test_a_run_that_has_ended_does_nothing_for_what_its_consumer_says_as_it_is_closed() -> None:
    world = World(as_connect=True)
    world.given(0, 1)
    world.assignment.end()
    world.told()
    world.given(2)
    world.taken(0, 1)
    assert world.told() == []
