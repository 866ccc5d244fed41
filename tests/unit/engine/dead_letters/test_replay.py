"""Replays: which letters are sent where, and how the replayed ones are recorded."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message

from keelman.cli.commands.records.dead_letters import replay_lines, since
from keelman.cli.commands.records.preview import preview_lines
from keelman.connect.bad_records.dead_letter import RecordOrigin, Why, context_headers
from keelman.connect.bad_records.replayed import MAX_TEXT, Replayed
from keelman.connect.bad_records.tolerance import RecordFailure
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.errors import ConnectError
from keelman.connect.failed_record import converter_stage
from keelman.connect.previews.record_trace import OnStep, OpenSteps, RecordTrace, StepFailure, pass_over
from keelman.connect.record import Record
from keelman.connect.records import Column, SourceBatch
from keelman.connect.schema import Schema
from keelman.engine.dead_letters.decisions import ReplayDecisions
from keelman.engine.producing.dead_letters import DeadLetterWriter
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.source.conversion import SourceConversion
from keelman.model.errors import InvalidArgument

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"bootstrap.servers": "b:1", "key.converter": JSON, "value.converter": JSON, "group.id": "g"}
CONFIG = {"key.converter.schemas.enable": "false", "topics": "t,u"}


def test_ranges_are_kept_as_they_were_added() -> None:
    chance = random.Random(7)
    for _ in range(200):
        begin, replayed, expected = chance.randrange(5), None, set[int]()
        replayed = Replayed(begin)
        for _ in range(chance.randrange(12)):
            first = chance.randrange(40)
            end = first + chance.randrange(6)
            replayed.add(first, end)
            expected |= set(range(first, end))
        again = Replayed.read(replayed.begin, replayed.text())
        for offset in range(begin, 50):
            assert (offset in replayed) == (offset in expected) == (offset in again), (offset, replayed.text())
        assert replayed.begin not in replayed


def test_metadata_of_others_means_nothing_and_too_much_is_refused() -> None:
    for text in (None, "", "somebody's", "replayed x", "replayed 1+"):
        assert Replayed.read(3, text).text() == ""
    many = Replayed(0)
    for offset in range(1, MAX_TEXT, 2):
        many.add(offset, offset + 1)
    with pytest.raises(OverflowError):
        many.text()


def ways(*, sink: bool = True, open_steps: OpenSteps = RecordTrace, **more: Any) -> ReplayDecisions:
    request = {"name": "c", "config": CONFIG, "worker_config": WORKER, "sink": sink, "to": "", "stage": ""}
    replay_decisions = ReplayDecisions({**request, "exception": "", "since_ms": None, **more}, open_steps)
    replay_decisions.know({"t": SimpleNamespace(partitions={0: None, 1: None})})
    return replay_decisions


def letter(value: bytes | None, whence: RecordOrigin, **more: Any) -> Message:
    reason = Why("TRANSFORMATION", "org.acme.X", "org.apache.kafka.connect.errors.DataException", "bad", "")
    headers = context_headers(whence, reason, connector="c", task=0, **more)
    return Message(topic="dead", partition=0, offset=5, key=None, value=value, headers=headers, timestamp=(1, 1000))


ENVELOPE = b'{"schema":{"type":"int32","optional":false},"payload":7}'


def test_a_topic_to_send_to_that_is_not_there_is_said_at_once() -> None:
    with pytest.raises(ConnectError, match="to: no topic 'nosuch'"):
        ways(to="nosuch")


@pytest.mark.parametrize(
    ("message", "terms", "outcome", "reason"),
    [
        (letter(ENVELOPE, RecordOrigin("t", 1, 3)), {}, "sent", ""),
        (letter(ENVELOPE, RecordOrigin("gone", 1, 3)), {}, "failed", "topic gone does not exist"),
        (letter(b"{", RecordOrigin("t", 1, 3)), {}, "failed", "VALUE_CONVERTER"),
        (letter(b"{", RecordOrigin("t", 1, 3)), {"to": "t"}, "sent", ""),
        (letter(None, RecordOrigin("t", 1, 3), record_bytes=9), {}, "lost", "9 bytes"),
        (letter(ENVELOPE, RecordOrigin("t", 1, 3)), {"stage": "TASK_PUT"}, "filtered", ""),
        (letter(ENVELOPE, RecordOrigin("t", 1, 3)), {"exception": "DataException"}, "sent", ""),
        (letter(ENVELOPE, RecordOrigin("t", 1, 3)), {"since_ms": 1001}, "filtered", ""),
        (letter(ENVELOPE, RecordOrigin("t", 1, 3)), {"name": "another"}, "others", ""),
        (letter(ENVELOPE, RecordOrigin("t"), value_format="json"), {"sink": False}, "sent", ""),
        (letter(b"{", RecordOrigin("t"), value_format="json"), {"sink": False}, "lost", "cannot be read again"),
        (letter(b"7", RecordOrigin("t"), value_format="text"), {"sink": False}, "lost", "only as text"),
        (Message(topic="dead", partition=0, offset=5, value=ENVELOPE), {}, "lost", "no header names"),
    ],
)
def test_fates(message: Message, terms: dict[str, Any], outcome: str, reason: str) -> None:
    fate = ways(**terms).fate(message, Replayed(0))
    assert (fate.outcome, reason in fate.why) == (outcome, True)
    assert (fate.record is not None) == (outcome == "sent")
    assert ways(**terms).fate(message, Replayed(6)).outcome == "before"


class Refusing(RecordTrace):
    """Steps of a connector that has its own."""

    def through(self, record: Record, on_step: OnStep = pass_over) -> Record | None:
        raise StepFailure("TRANSFORMATION", "transforms.own", ConnectError(f"no {record.value}"))


@pytest.mark.parametrize("sink", [True, False])
def test_a_connectors_own_steps_decide(*, sink: bool) -> None:
    whence, more = (RecordOrigin("t", 1, 3), {}) if sink else (RecordOrigin("t"), {"value_format": "json"})
    fate = ways(sink=sink, open_steps=Refusing).fate(letter(ENVELOPE, whence, **more), Replayed(0))
    assert (fate.outcome, fate.why) == ("failed", "TRANSFORMATION (transforms.own): no 7")


def test_a_letter_goes_where_it_was_and_elsewhere_without_its_partition() -> None:
    message = letter(ENVELOPE, RecordOrigin("t", 1, 3))
    for to, partition in (("", 1), ("t", None)):
        record = ways(to=to).fate(message, Replayed(0)).record
        assert record is not None
        assert (record.topic, record.partition, record.timestamp_ms, record.headers) == ("t", partition, 1000, [])
    moved = ways().fate(letter(ENVELOPE, RecordOrigin("t", 7, 3)), Replayed(0)).record
    assert moved is not None
    assert moved.partition is None


@pytest.mark.parametrize(("named", "partition"), [(None, None), (1, 1), (7, None)])
def test_a_sources_record_keeps_its_partition_and_the_schema_of_its_null(
    named: int | None, partition: int | None
) -> None:
    config = {**CONFIG, "name": "c", "errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}
    bad = BadRecords.of(config, sink=False)
    conversion = SourceConversion(config, WORKER, bad)
    value = Column([None], Schema("int32", optional=True, name="Age"))
    batch = SourceBatch("t", value, Column([None]), partitions=[named])
    broken = RecordFailure(converter_stage("value", JSON), ConnectError("bad"), RecordOrigin("t"))
    bad.pass_over(broken, lambda: conversion.original(batch, 0))
    (stored,) = bad.take_letters()
    key, raw, headers = DeadLetterWriter(bad, WORKER, config).row(stored)
    message = Message(topic="dead", partition=0, offset=5, key=key, value=raw, headers=list(headers))
    record = ways(sink=False).fate(message, Replayed(0)).record
    assert record is not None
    assert record.partition == partition
    assert (record.key, record.value) == (None, JsonConverter({}).from_connect(value)[0])
    assert b"Age" in (record.value or b"")


def test_letters_of_another_cluster_are_not_sent_to_it() -> None:
    config = {**CONFIG, "consumer.override.bootstrap.servers": "c:1"}
    with pytest.raises(ConnectError, match="another Kafka cluster"):
        ways(config=config)
    assert ways(config=config, to="t").fate(letter(b"x", RecordOrigin("t", 0, 1)), Replayed(0)).outcome == "sent"


def test_what_people_see() -> None:
    changed = {"topic": "t", "partition": None, "key": None, "value": {"schema": "string", "value": "one"}}
    base: dict[str, Any] = {**changed, "timestamp_ms": None, "headers": []}
    later = {**base, "topic": "u"}
    error = {"stage": "VALUE_CONVERTER", "step": "value.converter", "class": "a.DataException", "message": "bad"}
    bound = {"alias": "p", "holds": False, "negate": False}
    steps = [
        {"step": "read", "record": base},
        {"step": "transform", "alias": "route", "applied": True, "record": later},
        {"step": "transform", "alias": "drop", "applied": False, "predicate": bound, "record": later},
    ]
    outcome = {"outcome": "failed", "steps": steps, "error": {**error, "then": "the task fails"}}
    lines = list(preview_lines({"records": [outcome], "new_schemas": ["t-value"]}))
    assert [" ".join(line.split()) for line in lines] == [
        "record 1: failed",
        "read topic t key null value one : string",
        "route topic u",
        "drop not applied (p is false)",
        "value.converter VALUE_CONVERTER: DataException: bad",
        "the task fails",
        "schemas would be registered for: t-value",
    ]
    counts = {"sent": 2, "failed": 1, "lost": 0, "dropped": 0, "filtered": 0, "dry_run": True, "topic": "dead"}
    kinds = [{"stage": "TASK_PUT", "exception": "a.B", "sent": 2, "failed": 1}]
    bare = {"partition": 0, "offset": 7, "origin": None, "stage": "A", "key": None, "value": {"text": "a\x1b[2J"}}
    example = {**bare, "outcome": "failed", "message": "bad: it", "why": "A (b): bad: it"}
    whole = "\n".join(replay_lines({**counts, "kinds": kinds}, [example]))
    assert whole.splitlines()[-3:] == [
        "0@7 failed: A",
        "  of unknown topic: bad: it",
        "  key null  value a\\x1b[2J",
    ]
    assert "nothing was sent" in whole
    assert "TASK_PUT B: 2 sent, 1 failed" in whole


def test_times_are_given_as_they_are_or_as_ago() -> None:
    assert since("2026-05-01T12:00:00Z") == "2026-05-01T12:00:00Z"
    assert since("12h").endswith("+00:00")
    with pytest.raises(InvalidArgument, match="--since: 'yesterday' is not legal"):
        since("yesterday")
