"""The batches of a sink whose writer converts records itself, and the fate of records that the writer reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Message

from keelman.connect.bad_records.tolerance import RecordRefused
from keelman.connect.failed_record import Stage, converter_stage
from keelman.connect.plugin import KeptOffset, Writer
from keelman.connect.records import SinkBatch, TopicPartition
from keelman.connect.tasks.sink_source import WrittenRecord
from keelman.engine.control import Control, GaveUp
from keelman.engine.sink.pipeline import SinkPipeline
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import Positions
from keelman.engine.sink.steering import Steering

CONFIG = {"name": "c", "transforms": "a", "transforms.a.type": "com.acme.JavaOnly", "value.converter": "com.acme.Java"}
TOLERANT = {**CONFIG, "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
JSON: Stage = converter_stage("value", "org.apache.kafka.connect.json.JsonConverter")


class Kept(Writer):
    """Records its batches, then calls a function of the test."""

    def __init__(self, then: Any = lambda: None) -> None:
        self.batches: list[SinkBatch] = []
        self._then = then

    def write(self, batch: SinkBatch) -> None:
        self.batches.append(batch)
        self._then()

    def commit(self, offsets: Mapping[TopicPartition, KeptOffset], *, clean: bool) -> None:
        raise AssertionError


def pipeline(config: Mapping[str, str]) -> tuple[SinkPipeline, Steering]:
    """A pipeline whose connector converts, and its writer's steering."""
    control = Control()
    sink_pipeline = SinkPipeline("c", 0, {"bootstrap.servers": "none:1"}, config, control, converted=True)
    none: Any = None
    return sink_pipeline, Steering(control, sink_pipeline, lambda: Polling(none, Positions(), 30.0), lambda: none)


def messages() -> list[Message]:
    return [
        Message(topic="t", partition=1, offset=7, key=b"k", value=b"v", timestamp=(1, 99), headers=[("h", b"1")]),
        Message(topic="u", partition=0, offset=8),
    ]


def test_it_is_given_bytes_whatever_converters_and_transforms_are_named() -> None:
    sink, _ = pipeline(CONFIG)
    writer = Kept()
    assert sink.put(messages(), writer) == (2, 2)
    (batch,) = writer.batches
    assert batch.keys is not None
    assert batch.origin is not None
    assert (batch.values.values, batch.keys.values) == ([b"v", None], [b"k", None])
    assert (batch.origin.topics, batch.origin.partitions, batch.origin.offsets) == (["t", "u"], [1, 0], [7, 8])
    assert (batch.origin.timestamps_ms, batch.origin.headers) == ([99, None], [[("h", b"1")], None])


def test_what_it_reports_is_a_dead_letter_with_its_own_stage() -> None:
    sink, steering = pipeline(TOLERANT)
    earlier = WrittenRecord(TopicPartition("t", 0), 3, b"k", b"old", [("h", b"1")], 5)

    def report() -> None:
        steering.report(0, ValueError("no json"), JSON)
        steering.report_written(earlier, ValueError("late"))

    assert sink.put(messages(), Kept(report)) == (0, 2)
    letters = sink._bad.take_letters()
    assert [(letter.why.stage, letter.whence.offset, letter.original.value) for letter in letters] == [
        ("VALUE_CONVERTER", 7, b"v"),
        ("TASK_PUT", 3, b"old"),
    ]


def test_what_is_not_tolerated_fails_the_run() -> None:
    sink, steering = pipeline(CONFIG)
    with pytest.raises(RecordRefused, match="value converter JsonConverter"):
        sink.put(messages(), Kept(lambda: steering.report(1, ValueError("no json"), JSON)))


def test_a_write_that_gives_up_takes_its_letters_back() -> None:
    sink, steering = pipeline(TOLERANT)

    def give_up() -> None:
        steering.report(0, ValueError("no json"), JSON)
        raise GaveUp

    with pytest.raises(GaveUp):
        sink.put(messages(), Kept(give_up))
    assert sink._bad.take_letters() == []


def test_seeks_are_taken_once() -> None:
    _, steering = pipeline(CONFIG)
    steering.seek(TopicPartition("t", 0), 3)
    steering.seek(TopicPartition("t", 0), 5)
    assert steering.take_seeks() == {TopicPartition("t", 0): 5}
    assert steering.take_seeks() == {}
