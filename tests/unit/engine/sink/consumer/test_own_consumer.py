"""A consumer that a writer brings: how it is read, the fate of its records, and its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.plugin import Writer
from keelman.connect.records import TopicPartition
from keelman.engine.control import Control
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.sink.batch import RawColumns, split_errors
from keelman.engine.sink.consumer.consumer import (
    own_consumer_properties,
    passed_over_assignors,
    sink_consumer_properties,
)
from keelman.engine.sink.consumer.own_consumer import OwnRecords
from keelman.engine.sink.polling import Polling
from keelman.engine.sink.positions.positions import Positions
from keelman.kafka.properties.settings import for_java
from keelman.kafka.security.oauth import URL_KEY

WORKER = {"bootstrap.servers": "a:1", "group.id": "workers", "consumer.fetch.min.bytes": "7"}
END = KafkaError(KafkaError._PARTITION_EOF, "no more")


class Two(OwnRecords):
    """Two records, of which no Message may be made without need."""

    events = ((Message(topic="t", partition=1, offset=9, error=END), END),)
    size = 11

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("made a Message that nobody needs")

    def last_of_each(self) -> Mapping[tuple[str, int], Any]:
        return {("t", 0): Message(topic="t", partition=0, offset=5)}


class Whole:
    """A consumer that is read in whole batches."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, float]] = []

    def read(self, most: int, seconds: float) -> OwnRecords:
        self.asked.append((most, seconds))
        return Two()


def made(config: Mapping[str, str], worker: Mapping[str, str] = WORKER, most: int = 500) -> dict[str, str]:
    of_library = sink_consumer_properties(worker, config, "c", 3, read_committed=True, zombie_seconds=0)
    return own_consumer_properties(worker, config, of_library, most)


def test_it_is_read_whole_and_no_message_is_made() -> None:
    consumer, positions, now = Whole(), Positions(), [5.0]
    polling = Polling(consumer, positions, 30.0, lambda: now[0])  # type: ignore[arg-type]
    polled = polling.read(100, 0.1)
    assert consumer.asked == [(100, 0.1)]
    assert isinstance(polled, Two)
    records, events = split_errors(polled)
    assert (records, [error.code() for _, error in events]) == (polled, [KafkaError._PARTITION_EOF])
    positions.begin(TopicPartition("t", 0), None, 0)
    positions.advance(positions.last_of_each(polled))
    assert positions.due(TopicPartition("t", 0))[0] == 6


def test_its_records_are_the_values_of_their_batch() -> None:
    bad = BadRecords("c", 0, Policy.of({}, sink=True), Control(), None)
    records = Two()
    batch, size = RawColumns(bad).batch(records, Writer)  # type: ignore[arg-type]
    assert (batch.values.values is records, size) == (True, 11)


def test_the_users_properties_reach_it_as_they_are_written_and_ours_win() -> None:
    fields = {
        "consumer.override.max.partition.fetch.bytes": "123",
        "consumer.override.interceptor.classes": "acme.Spy",
        "consumer.override.key.deserializer": "acme.Odd",
        "consumer.override.enable.auto.commit": "true",
        "consumer.override.auto.offset.reset": "latest",
    }
    answer = made(fields)
    assert answer["max.partition.fetch.bytes"] == "123"
    assert answer["fetch.min.bytes"] == "7"
    assert not {"interceptor.classes", "key.deserializer"} & answer.keys()
    assert (answer["enable.auto.commit"], answer["auto.offset.reset"]) == ("false", "none")
    assert (answer["group.id"], answer["group.instance.id"]) == ("connect-c", "workers-c-3")
    assert (answer["isolation.level"], answer["max.poll.records"]) == ("read_committed", "500")


@pytest.mark.parametrize(
    ("value", "named", "of_library", "passed_over"),
    [
        ("", "Range RoundRobin CooperativeSticky", "", []),
        ("Range", "Range", "range", []),
        ("RoundRobin, Range", "RoundRobin Range", "roundrobin,range", []),
        ("Sticky", "Sticky", "range", ["Sticky"]),
        ("CooperativeSticky", "CooperativeSticky", "cooperative-sticky", []),
        ("Range,CooperativeSticky", "Range CooperativeSticky", "range", ["CooperativeSticky"]),
        ("CooperativeSticky,Sticky", "CooperativeSticky Sticky", "range", ["CooperativeSticky", "Sticky"]),
    ],
)
def test_assignors_are_those_that_the_user_names_where_the_consumer_has_them(
    value: str, named: str, of_library: str, passed_over: list[str]
) -> None:
    package = "org.apache.kafka.clients.consumer."
    text = ",".join(f"{package}{part.strip()}Assignor" for part in value.split(",") if part)
    config = {"consumer.override.partition.assignment.strategy": text}
    java = made(config)["partition.assignment.strategy"]
    assert java == ",".join(f"{package}{part}Assignor" for part in named.split())
    library = sink_consumer_properties(WORKER, config, "c", 3, read_committed=True, zombie_seconds=0)
    assert library.get("partition.assignment.strategy", "") == of_library
    assert passed_over_assignors(WORKER, config, library) == [f"{name}Assignor" for name in passed_over]


@pytest.mark.parametrize("fields", [{}, {"sasl.login.callback.handler.class": ""}])
def test_tokens_of_a_server_need_no_handler_to_be_named(fields: dict[str, str]) -> None:
    answer = for_java({URL_KEY: "https://tokens", "sasl.mechanism": "OAUTHBEARER", **fields}, "consumer")
    assert answer["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
