"""Topics are read to ends that were known, and no further."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message

from keelman.engine.reading import read_to, time_ms


class Given:
    """A consumer that returns these batches, call by call."""

    def __init__(self, *batches: list[Message]) -> None:
        self.batches = list(batches)
        self.assigned: list[Any] = []

    def assign(self, places: list[Any]) -> None:
        self.assigned = [(place.topic, place.partition, place.offset) for place in places]

    def consume(self, _most: int, _seconds: float) -> list[Message]:
        return self.batches.pop(0)


def at(partition: int, offset: int, error: int | None = None) -> Message:
    reported = None if error is None else KafkaError(error, "told", False, error == KafkaError._TRANSPORT)
    return Message(topic="t", partition=partition, offset=offset, value=b"x", error=reported)


def test_a_partition_ends_with_the_message_before_its_end_one_behind_it_or_the_word_that_there_is_no_more() -> None:
    eof, away = KafkaError._PARTITION_EOF, KafkaError._TRANSPORT
    value = Given([at(0, 4), at(0, 5), at(0, 6), at(1, 2)], [at(1, 9), at(2, 0, away)], [at(2, 0, eof)], [at(0, 7)])
    ends = {("t", 0): 6, ("t", 1): 5, ("t", 2): 3, ("t", 3): 8}
    starts = {("t", 0): 4, ("t", 1): 0, ("t", 2): 0, ("t", 3): 8}
    read = list(read_to(value, starts, ends, time.monotonic() + 60))  # type: ignore[arg-type]
    assert value.assigned == [("t", 0, 4), ("t", 1, 0), ("t", 2, 0)]
    assert [[(message.partition(), message.offset()) for message in batch] for batch in read] == [
        [(0, 4), (0, 5), (1, 2)]
    ]
    assert (ends, len(value.batches)) == ({}, 1)


def test_what_is_not_read_in_time_is_left_and_what_is_enough_can_be_taken_out() -> None:
    ends = {("t", 0): 6, ("t", 1): 5}
    assert list(read_to(Given(), dict.fromkeys(ends, 0), ends, time.monotonic())) == []  # type: ignore[arg-type]
    assert set(ends) == {("t", 0), ("t", 1)}
    reading = read_to(Given([at(0, 0), at(1, 4)]), dict.fromkeys(ends, 0), ends, time.monotonic() + 60)  # type: ignore[arg-type]
    assert len(next(reading)) == 2
    del ends["t", 0]
    assert list(reading) == []


def test_what_does_not_pass_ends_it() -> None:
    ends = {("t", 0): 6}
    value = Given([at(0, 0, KafkaError.TOPIC_AUTHORIZATION_FAILED)])
    with pytest.raises(KafkaException):
        list(read_to(value, {("t", 0): 0}, ends, time.monotonic() + 60))  # type: ignore[arg-type]


def test_a_message_without_a_time_has_none() -> None:
    assert time_ms(Message(topic="t", partition=0, offset=0, timestamp=(1, 7))) == 7
    assert time_ms(Message(topic="t", partition=0, offset=0)) is None
