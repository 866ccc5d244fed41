"""The order in which a sink commits, and when it does not, with a recording consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from keelman.api.copy.v1.copy_run_pb2 import LAG_UNIT_RECORDS
from keelman.connect.plugin import KeptOffset, Writer
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.connect.tasks.sink_source import WrittenRecord
from keelman.engine.commit_interval import flush_seconds
from keelman.engine.control import Control, GaveUp
from keelman.engine.failure import RunFailure
from keelman.engine.progress import Progress
from keelman.engine.sink.commit_clock import CommitClock
from keelman.engine.sink.commits import SinkCommits
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.positions.source_topics import SourceTopics

WHERE = TopicPartition("t", 0)
SINK = "org.apache.kafka.connect.json.JsonConverter"
CONFIG = {"name": "c", "value.converter": SINK, "value.converter.schemas.enable": "false", "errors.tolerance": "all"}
WORKER = {"bootstrap.servers": "none:1", "key.converter": SINK, "value.converter": SINK}


class World(Writer):
    """A sink's commits with their arguments; it also serves as their writer and their consumer."""

    def __init__(self, zombie_seconds: float = 0.0) -> None:
        self.zombie_seconds = zombie_seconds
        self.said: list[str] = []
        self.now = 0.0
        self.on_write: Any = None
        self.on_settle: Any = None
        self.safe: int | None = None
        self.positions, self.progress = Positions(), Progress()
        config = {**CONFIG, "errors.deadletterqueue.topic.name": "dead"}
        self.pipeline = SinkPipeline("c", 0, WORKER, config, Control())
        consumer: Any = Consumed(self)
        self.consumer = consumer
        self.commits = SinkCommits(
            Control(),
            consumer=consumer,
            writer=self,
            pipeline=self.pipeline,
            positions=self.positions,
            polling=Polling(consumer, self.positions, 30.0, lambda: self.now),
            topics=SourceTopics({}, lambda: None),
            progress=self.progress,
            clock=CommitClock(60.0, lambda: self.now),
        )
        self.positions.begin(WHERE, None, 0)

    def settle(self, *, last: bool) -> None:
        self.said.append(f"settled{' last' * last}")
        if self.on_settle is not None:
            self.on_settle()

    def write(self, batch: SinkBatch) -> None:
        if self.on_write is not None:
            self.on_write()

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        offset = offsets[WHERE].offset if offsets else "nothing"
        self.said.append(f"kept {offset}{' clean' * clean}")

    def committable(self) -> Mapping[TopicPartition, int] | None:
        return None if self.safe is None else {WHERE: self.safe}

    def hand_over(self) -> None:
        self.said.append("handed over")

    def wrote(self, *values: bytes) -> None:
        messages = [Message(topic="t", partition=0, offset=n, value=value) for n, value in enumerate(values)]
        records, size = self.pipeline.put(messages, self, self.commits.settle)
        self.commits.hand(self.positions.last_of_each(messages), len(messages), records, size)
        if not self.writes_behind:
            self.commits.settle()


class Consumed:
    """The part of a consumer that a commit needs: it answers at its next poll."""

    def __init__(self, world: World) -> None:
        self._world, self._asked = world, list[Any]()
        self.refuses: KafkaError | None = None

    def commit(self, *, offsets: Any, asynchronous: bool) -> None:
        self._world.said.append(f"group {offsets[0].offset}{'' if asynchronous else ' now'}")
        self._asked += [offsets] * asynchronous

    def poll(self, _seconds: float) -> None:
        for offsets in self._asked:
            self._world.positions.answered(self.refuses, offsets)
        self._asked.clear()

    def pause(self, _partitions: Any) -> None:
        pass


def test_the_writer_commits_before_the_group_and_each_once() -> None:
    world = World()
    world.wrote(b"1", b"{", b"3")
    assert not world.commits.settled
    world.commits.commit()
    world.commits.commit()
    assert world.said == ["kept 3", "group 3"]
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 2
    assert (world.commits.unkept, world.commits.settled) == (False, False), "its answer is still to come"


def test_what_the_group_has_refused_it_is_told_again_though_nothing_new_came() -> None:
    world = World()
    world.wrote(b"1")
    world.consumer.refuses = KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    world.commits.commit()
    world.consumer.poll(0)
    assert not world.commits.settled
    world.consumer.refuses = None
    world.commits.commit()
    world.consumer.poll(0)
    world.commits.commit()
    assert world.said == ["kept 1", "group 1", "group 1"]
    assert world.commits.settled


def test_a_drained_run_tells_its_group_again_what_that_has_refused() -> None:
    world = World()
    world.wrote(b"1")
    world.consumer.refuses = KafkaError(KafkaError.REBALANCE_IN_PROGRESS)
    world.commits.commit()
    world.consumer.poll(0)
    world.consumer.refuses = None
    world.commits.finish()
    assert world.said == ["kept 1", "group 1", "group 1", "kept 1 clean", "handed over"]


@pytest.mark.parametrize(("shown", "messages"), [(3, ["group 7"]), (None, ["group 7"]), (7, [])])
def test_a_run_that_goes_on_from_the_data_tells_its_group(shown: int | None, messages: list[str]) -> None:
    world = World()
    world.commits.forget()
    world.positions.begin(WHERE, shown, 7)
    world.commits.commit()
    world.consumer.poll(0)
    world.commits.commit()
    assert world.said == messages


def test_a_drained_run_keeps_what_the_group_has_answered() -> None:
    world = World()
    world.wrote(b"1")
    world.commits.finish()
    assert world.said == ["kept 1", "group 1", "kept 1 clean", "handed over"]
    assert world.commits.settled


def test_a_drained_run_without_partitions_ends_clean() -> None:
    world = World()
    world.commits.forget()
    world.commits.finish()
    assert world.said == ["kept nothing clean", "handed over"]


def test_a_writer_that_others_may_take_over_commits_nothing_after_a_silence() -> None:
    world = World(zombie_seconds=10.0)
    world.wrote(b"1")
    world.now = 31.0
    with pytest.raises(RunFailure, match="has not polled for 31"):
        world.commits.commit()
    assert world.said == []


def test_only_the_batch_that_is_being_put_is_given_up_with_its_letters() -> None:
    world = World()
    world.wrote(b"1", b"{")
    world.pipeline.give_up()
    assert [letter.original.value for letter in world.pipeline._bad.take_letters()] == [b"{"]
    world.on_write = world.pipeline.give_up
    world.wrote(b"1", b"{")
    assert world.pipeline._bad.take_letters() == []


def test_the_group_hears_of_no_more_than_the_writer_says() -> None:
    world = World()
    world.safe = 1
    world.wrote(b"1", b"2", b"3")
    world.commits.commit()
    world.commits.consumer.poll(0)
    assert world.said == ["kept 3", "group 1"]
    assert not world.commits.settled
    assert world.positions.texts() == {'{"topic":"t","partition":0}': "1"}
    world.commits.commit()
    assert world.said[2:] == ["kept 3"], "the writer is called again, and the group has its offsets"
    world.safe = 3
    world.commits.finish()
    assert world.said[3:] == ["kept 3", "group 3", "kept 3 clean", "handed over"]
    assert world.commits.settled


def test_what_a_writer_says_last_is_committed_too() -> None:
    world = World()
    world.safe = 0
    world.wrote(b"1", b"2")
    world.commits.commit()
    world.commits.consumer.poll(0)
    world.safe = 9
    world.commits.commit()
    assert world.said[-1] == "kept 2", "it cannot be further than the records that it got"


def test_what_is_read_again_is_given_to_the_group_from_there() -> None:
    world = World()
    world.safe = 2
    world.wrote(b"1", b"2")
    world.commits.commit()
    world.commits.consumer.poll(0)
    world.positions.rewind(WHERE, 1)
    world.commits.advanced()
    world.safe = 1
    world.commits.commit()
    assert world.said[2:] == ["kept 1", "group 1"]
    assert world.positions.due(WHERE)[0] == 1


def behind() -> World:
    world = World()
    world.writes_behind = True
    return world


def test_what_a_writer_has_yet_to_write_counts_once_it_is_settled() -> None:
    world = behind()
    world.wrote(b"1", b"{", b"3")
    assert (world.positions.due(WHERE)[0], world.said) == (0, [])
    assert not world.commits.settled
    world.wrote(b"1", b"2")
    assert (world.positions.due(WHERE)[0], world.said) == (3, ["settled"])
    world.commits.commit()
    assert world.said[1:] == ["settled", "kept 2", "group 2"]
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 4


def test_what_is_given_up_is_not_committed_and_its_letters_are_not_sent() -> None:
    world = behind()

    def give_up() -> None:
        world.pipeline.report_written(WrittenRecord(WHERE, 1, None, b"late"), ValueError("late"))
        raise GaveUp

    world.wrote(b"1", b"2")
    world.on_settle = give_up
    with pytest.raises(GaveUp):
        world.wrote(b"1", b"{", b"3")
    assert world.pipeline._bad.take_letters() == []
    world.commits.finish()
    assert world.said == ["settled", "group 0", "kept 0 clean", "handed over"]


def test_bad_records_of_what_is_written_stay_where_the_next_batch_is_given_up() -> None:
    world = behind()
    world.wrote(b"1", b"2")
    world.on_settle = lambda: world.pipeline.report_written(WrittenRecord(WHERE, 1, None, b"late"), ValueError("late"))
    messages = [Message(topic="t", partition=0, offset=2, value=b"{")]

    def ready() -> None:
        world.commits.settle()
        raise LookupError

    with pytest.raises(LookupError):
        world.pipeline.put(messages, world, ready)
    assert [letter.original.value for letter in world.pipeline._bad.take_letters()] == [b"late"]
    world.commits.commit()
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 1


def as_in_connect() -> World:
    world = World()
    world.commits_on_time = True
    return world


def test_a_task_of_connects_is_called_each_interval_whether_there_is_news_or_not() -> None:
    world = as_in_connect()
    world.wrote(b"1")
    assert not world.commits.commit_when_due()
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 1, "it counts as it is written"
    for _ in range(2):
        world.now += 60
        assert world.commits.commit_when_due()
        world.consumer.poll(0)
    assert world.said == ["kept 1", "group 1", "kept 1"]
    assert world.progress.message(0, LAG_UNIT_RECORDS).records == 1


def test_a_task_of_connects_is_asked_once_at_its_end() -> None:
    world = as_in_connect()
    world.wrote(b"1")
    world.commits.finish()
    assert world.said == ["kept 1", "group 1", "handed over"]


def test_what_a_task_of_connects_wrote_before_a_failure_is_committed() -> None:
    world = as_in_connect()
    world.wrote(b"1")
    messages = [Message(topic="t", partition=0, offset=1, value=b"2")]
    world.commits.hand(world.positions.last_of_each(messages), 1, 1, 1)
    world.commits.finish_failed()
    assert world.said == ["kept 1", "group 1"]
    other = World()
    other.wrote(b"1")
    other.commits.finish_failed()
    assert other.said == []


@pytest.mark.parametrize(
    ("worker", "connector", "seconds"),
    [
        ({}, {}, 60.0),
        ({"offset.flush.interval.ms": "10000"}, {}, 10.0),
        ({"offset.flush.interval.ms": "10000", "keelman.commit.interval.ms": "300"}, {}, 0.3),
        ({"offset.flush.interval.ms": "10000"}, {"keelman.commit.interval.ms": "500"}, 0.5),
    ],
)
def test_how_often_a_task_of_connects_is_flushed(
    worker: dict[str, str], connector: dict[str, str], seconds: float
) -> None:
    assert flush_seconds(worker, connector) == seconds
