"""Bad records of every kind, read from Kafka and written to it.

By policy a bad record fails the task, is skipped or becomes a dead letter. Good records keep their order, all of them
arrive, and the counts are exact.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Message

from keelman.connect.bad_records.dead_letter import DeadLetter, RecordOrigin, Why, read_letter
from keelman.connect.bad_records.tolerance import Budget, Policy, RecordFailure, RecordRefused
from keelman.connect.errors import RetriableConnectError
from keelman.connect.failed_record import converter_stage
from keelman.connect.plugin import Writer
from keelman.connect.records import Column, SinkBatch, SourceBatch
from keelman.connect.schema import STRING
from keelman.connectors.registry import find_connector
from keelman.connectors.validation.configuration import keys_of
from keelman.engine.control import CutShort, GaveUp
from keelman.engine.failure import RunFailure, judge
from keelman.engine.producing.dead_letters import DeadLetterWriter
from keelman.engine.records.bad_records import BadRecords, Letter, Original
from keelman.engine.records.size import NO_LIMIT, Sizes, record_bytes
from keelman.engine.sink.batch import BatchBuilder
from keelman.engine.source.conversion import SourceConversion
from keelman.worker.restart_policy import FailureCause, RestartPolicy, Restarts

JSON = "org.apache.kafka.connect.json.JsonConverter"
TEXT = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"bootstrap.servers": "none:1", "key.converter": TEXT, "value.converter": TEXT}
BARE = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
DEAD = {"errors.deadletterqueue.topic.name": "dead", "errors.deadletterqueue.context.headers.enable": "true"}
POLICIES: dict[str, dict[str, str]] = {
    "fail": {},
    "skip": {"errors.tolerance": "all"},
    "dead letter": {"errors.tolerance": "all", **DEAD},
}
LATE = b'{"schema":{"type":"int32","name":"org.apache.kafka.connect.data.Time","version":1},"payload":86400001}'
MEGABYTE = 1 << 20


def step(kind: str, **own: str) -> dict[str, str]:
    whole = f"org.apache.kafka.connect.transforms.{kind}"
    return {"transforms": "x", "transforms.x.type": whole, **{f"transforms.x.{k}": v for k, v in own.items()}}


class Collected(Writer):
    """A writer that collects its batches."""

    wants_keys = True

    def __init__(self) -> None:
        self.batches: list[SinkBatch] = []

    def write(self, batch: SinkBatch) -> None:
        self.batches.append(batch)

    def commit(self, offsets: Mapping[Any, Any], *, clean: bool) -> None:
        pass


Fields = dict[str, Any]
# The fault, the configuration, a good record, the bad record, the stage, the class.
SINKS: dict[str, tuple[dict[str, str], Fields, Fields, str, str]] = {
    "bad JSON": (BARE, {"value": b"1"}, {"value": b'{"a":'}, "VALUE_CONVERTER", JSON),
    "wrong type": (
        step("Cast$Value", spec="int32"),
        {"value": b"1"},
        {"value": b"one"},
        "TRANSFORMATION",
        "Cast$Value",
    ),
    "overflow": (step("Cast$Value", spec="int8"), {"value": b"1"}, {"value": b"128"}, "TRANSFORMATION", "Cast$Value"),
    "a time beyond its day": ({"value.converter": JSON}, {"value": None}, {"value": LATE}, "VALUE_CONVERTER", JSON),
    "NaN": (BARE, {"value": b"1"}, {"value": b'{"a":NaN}'}, "VALUE_CONVERTER", JSON),
    "invalid UTF-8": (BARE, {"value": b"1"}, {"value": b'"\xff\xfe"'}, "VALUE_CONVERTER", JSON),
    "bad key": ({"key.converter": JSON}, {"key": None}, {"key": b"{"}, "KEY_CONVERTER", JSON),
    "null key": (
        {"key.converter": JSON, "key.converter.schemas.enable": "false"}
        | step("HeaderFrom$Key", fields="a", headers="a", operation="copy"),
        {"key": b'{"a":1}'},
        {"key": None},
        "TRANSFORMATION",
        "HeaderFrom$Key",
    ),
    "tombstone": (
        BARE | step("ValueToKey", fields="a"),
        {"value": b'{"a":1}'},
        {"value": None},
        "TRANSFORMATION",
        "ValueToKey",
    ),
    "10 MB": (BARE, {"value": b"1"}, {"value": b"x" * 10 * MEGABYTE}, "VALUE_CONVERTER", JSON),
    "1 MB header": (
        {"header.converter": JSON} | step("Cast$Value", spec="string"),
        {"value": b"1", "headers": [("h", b'{"schema":null,"payload":1}')]},
        {"value": b"1", "headers": [("h", b"x" * MEGABYTE)]},
        "HEADER_CONVERTER",
        JSON,
    ),
    "nesting": (BARE, {"value": b"1"}, {"value": b"[" * 10_000 + b"]" * 10_000}, "VALUE_CONVERTER", JSON),
}


def letters_of(bad: BadRecords, config: dict[str, str]) -> list[DeadLetter]:
    """The dead letters that would be written to the topic."""
    dead = DeadLetterWriter(bad, WORKER, config)
    return [read_letter(*dead.row(letter)) for letter in bad.take_letters()]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("poison", SINKS)
def test_a_sink_meets_poison(poison: str, policy: str) -> None:
    own, good, bad_one, stage, class_name = SINKS[poison]
    config = {"name": "c", **own, **POLICIES[policy]}
    bad = BadRecords("c", 3, Policy.of(config, sink=True))
    columns, writer = BatchBuilder(config, WORKER, bad), Collected()
    values = [good, bad_one, good, bad_one, good]
    messages = [
        Message(topic="t", partition=1, offset=40 + n, timestamp=(1, n), **{"value": b"v", **value})
        for n, value in enumerate(values)
    ]
    if policy == "fail":
        with pytest.raises(RecordRefused) as refused:
            columns.batch(messages, writer)
        check_refusal(refused.value, "topic t, partition 1, offset 41", class_name)
        assert (bad.counts.failures, bad.counts.errors, bad.counts.skipped) == (1, 1, 0)
        return
    batch, _ = columns.batch(messages, writer)
    assert batch.origin is not None
    assert list(batch.origin.offsets) == [40, 42, 44]
    assert len(batch.values.values) == 3
    assert [columns.place(n) for n in range(3)] == [0, 2, 4]
    assert (bad.counts.failures, bad.counts.errors, bad.counts.skipped) == (2, 2, 2)
    letters = letters_of(bad, config)
    if policy == "skip":
        assert letters == []
        return
    assert [letter.whence and letter.whence.offset for letter in letters] == [41, 43]
    reason = letters[0].why
    assert reason is not None
    assert (reason.stage, reason.class_name.endswith(class_name), letters[0].task) == (stage, True, 3)
    size = record_bytes(bad_one.get("key"), bad_one.get("value", b"v"), bad_one.get("headers"))
    if size > MEGABYTE:
        assert (letters[0].value, letters[0].record_bytes, list(letters[0].headers)) == (None, size, [])
    else:
        assert (letters[0].key, letters[0].value) == (bad_one.get("key"), bad_one.get("value", b"v"))
        assert letters[0].record_bytes is None


def check_refusal(error: RecordRefused, place: str, class_name: str) -> None:
    """One line names the record, the step and the cause, below Connect's own first line."""
    verdict = judge(error)
    first, second = verdict.trace.splitlines()[:2]
    assert first == "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler"
    assert second.startswith("Caused by: ")
    for line in (second, verdict.message):
        assert place in line
        assert class_name.rpartition(".")[2] in line
    assert (verdict.reason, verdict.retriable) == ("TASK_FAILED", False)


STRINGS = {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
SOURCES: dict[str, tuple[dict[str, str], Fields, Fields, str]] = {
    "wrong type": (step("Cast$Value", spec="int32"), {"value": "1"}, {"value": "one"}, "TRANSFORMATION"),
    "overflow": (step("Cast$Value", spec="int8"), {"value": "1"}, {"value": "128"}, "TRANSFORMATION"),
    "10 MB": ({}, {"value": "1"}, {"value": "x" * 10 * MEGABYTE}, "KAFKA_PRODUCE"),
    "1 MB header": ({}, {"value": "1"}, {"value": "1", "headers": (("h", b"x" * MEGABYTE),)}, "KAFKA_PRODUCE"),
    "bad header": (
        {"header.converter": JSON} | step("Cast$Value", spec="string"),
        {"value": "1"},
        {"value": "1", "headers": (("h", b"{"),)},
        "HEADER_CONVERTER",
    ),
    "key": ({"key.converter": STRINGS["value.converter"]}, {"key": None}, {"key": "text"}, "KEY_CONVERTER"),
    "tombstone": (step("ValueToKey", fields="a"), {"value": {"a": 1}}, {"value": None}, "TRANSFORMATION"),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("poison", SOURCES)
def test_a_source_meets_poison(poison: str, policy: str) -> None:
    own, good, bad_one, stage = SOURCES[poison]
    config = {"name": "c", **own, **POLICIES[policy]}
    bad = BadRecords("c", 0, Policy.of(config, sink=False))
    conversion = SourceConversion(config, WORKER, bad, lambda _: Sizes(MEGABYTE))
    values = [{"value": "v", **fields} for fields in (good, bad_one, good, bad_one, good)]
    batch = SourceBatch(
        "t",
        Column([value["value"] for value in values], None if poison == "tombstone" else STRING),
        Column([value.get("key") for value in values]),
        headers=[value.get("headers", ()) for value in values],
        offsets=(({"file": "f"}, {"position": 9}),),
        position=lambda n: ({"file": "f"}, {"position": n}),
    )
    if policy == "fail":
        with pytest.raises(RecordRefused) as refused:
            list(conversion.payloads(batch))
        verdict = judge(refused.value)
        assert 'source offset {"position":1}, source partition {"file":"f"}' in verdict.message
        assert "\n" not in verdict.message
        return
    payloads = list(conversion.payloads(batch))
    assert [len(values) for _, values, _ in payloads] == [3]
    assert (bad.counts.errors, bad.counts.skipped) == (2, 2)
    letters = letters_of(bad, config)
    if policy == "skip":
        assert letters == []
        return
    assert [letter.whence and letter.whence.source_offset for letter in letters] == [{"position": 1}, {"position": 3}]
    assert letters[0].why is not None
    assert letters[0].why.stage == stage
    if stage == "KAFKA_PRODUCE":
        assert letters[0].value is None
        assert (letters[0].record_bytes or 0) > MEGABYTE
    elif poison != "tombstone":
        assert letters[0].value_format == "json"
        assert b'"payload":"' in (letters[0].value or b"")


def test_the_budget_ends_what_is_passed_over() -> None:
    config = {"name": "c", **BARE, "errors.tolerance": "all", "keelman.errors.budget": "2"}
    bad = BadRecords("c", 0, Policy.of(config, sink=True))
    columns = BatchBuilder(config, WORKER, bad)
    messages = [Message(topic="t", partition=0, offset=n, value=b"{") for n in range(3)]
    columns.batch(messages[:2], Collected())
    with pytest.raises(RunFailure, match=r"3 records .* keelman.errors.budget allows 2; .* offset 2;") as spent:
        columns.batch(messages[2:], Collected())
    assert (spent.value.reason, spent.value.retriable) == ("ERROR_BUDGET_SPENT", False)


def test_what_may_pass_is_tried_again_and_counted() -> None:
    config = {"errors.retry.timeout": "5000", "errors.retry.delay.max.ms": "1"}
    bad = BadRecords("c", 0, Policy.of(config, sink=True))
    left = [RetriableConnectError("away"), RetriableConnectError("away")]

    def work() -> str:
        if left:
            raise left.pop()
        return "done"

    assert bad.retry(work) == "done"
    assert (bad.counts.failures, bad.counts.retries, bad.counts.errors) == (2, 2, 0)


def test_a_topics_limit_is_asked_again_before_a_record_is_too_large() -> None:
    limits, asks = [300, NO_LIMIT, 300, 900], list[int]()

    def ask() -> int:
        asks.append(limits[0])
        return limits.pop(0)

    sizes = Sizes(1_000, 200, ask=ask, asked=-10.0)
    assert sizes.fault(None, b"x" * 10, None) is None
    assert asks == []
    assert "max.message.bytes of the topic is 300" in str(sizes.fault(None, b"x" * 500, None))
    assert sizes.fault(None, b"x" * 500, None) is not None
    assert asks == [300]  # five seconds have not passed
    sizes.asked -= 10  # no answer: the last known size holds
    assert (sizes.room(500), sizes.topic) == (False, 300)
    sizes.asked -= 20
    assert (sizes.room(500), sizes.room(2_000)) == (False, False)
    sizes.asked -= 20
    assert (sizes.room(500), sizes.room(1_001)) == (True, False)
    assert limits == []


@pytest.mark.parametrize(
    ("most", "value", "headers", "message"),
    [(9_000, True, 1, "m" * 5_000), (4_000, True, 1, "m" * 999), (1_500, True, 1, "m" * 99), (900, False, 1, "m" * 99)],
)
def test_a_dead_letter_shrinks_until_its_topic_takes_it(most: int, value: bool, headers: int, message: str) -> None:
    config = {"name": "c", **POLICIES["dead letter"]}
    dead = DeadLetterWriter(BadRecords("c", 0, Policy.of(config, sink=True)), WORKER, config)
    reason = Why("TASK_PUT", "a.B", "a.C", "m" * 5_000, "t" * 10_000)
    letter = Letter(Original(b"k", b"v" * 500, [("own", b"1")]), RecordOrigin("t", 0, 1), reason)
    dead.sizes = Sizes(most)
    row = dead.row(letter)
    assert record_bytes(*row) <= most
    read = read_letter(*row)
    assert (read.value is not None, len(read.headers)) == (value, headers)
    assert read.why is not None
    assert (read.why.message or "").removesuffix("\u2026") == message


def test_a_dead_letter_without_room_for_anything_tells_that_it_was_one() -> None:
    config = {"name": "c", **POLICIES["dead letter"]}
    dead = DeadLetterWriter(BadRecords("c", 0, Policy.of(config, sink=False)), WORKER, config)
    whence = RecordOrigin("t", source_partition={"file": "f" * 1_000})
    dead.sizes = Sizes(200)
    row = dead.row(Letter(Original(b"k", b"v", ()), whence, Why("TASK_PUT", "a.B", "a.C", None, "trace")))
    assert record_bytes(*row) <= 200
    assert read_letter(*row).record_bytes == record_bytes(b"k", b"v", ())


def test_a_share_of_bad_records_counts_within_its_window_once_there_are_ten() -> None:
    budget = Budget(Policy(budget_percent=50, window_ms=1_000))
    budget.took(10, 0)
    assert [budget.spend(0) for _ in range(9)] == [None] * 9
    assert "10 of 10 records" in (budget.spend(0) or "")
    budget.took(100, 500)
    assert budget.spend(600) is None
    budget.took(1, 2_000)
    assert budget.spend(2_000) is None  # bytes from before the window no longer count


def test_a_budget_keeps_no_more_than_it_must_know() -> None:
    share = Budget(Policy(budget_percent=50, window_ms=60_000))
    for now in range(100_000):
        share.took(3, now)
        assert share.spend(now) is None
    assert len(share._slices) <= 61
    assert len(share._times) == 0
    assert abs(share._bad - 60_000) <= 1_100
    number = Budget(Policy(budget=3, window_ms=10))
    assert [number.spend(now) for now in (0, 1, 2, 11, 12, 13)] == [None] * 6
    assert "4 records could not be copied within 10 ms" in (number.spend(13) or "")


def test_a_spent_budget_is_not_tried_again_by_itself() -> None:
    restarts = Restarts(RestartPolicy(), random.random)
    assert restarts.failed("ERROR_BUDGET_SPENT", retriable=False, alone=False, healthy_seconds=0) == (
        FailureCause.CONFIG,
        None,
    )


def test_sources_have_dead_letters_and_all_have_a_budget() -> None:
    for name in ("FileStreamSource", "FileStreamSink"):
        keys = keys_of(find_connector(name)).keys
        assert {"errors.deadletterqueue.topic.name", "keelman.errors.budget", "keelman.errors.budget.percent"} <= set(
            keys
        )
    assert Policy.of({}, sink=False).context
    assert not Policy.of({}, sink=True).context


def test_what_is_no_fault_of_a_record_is_let_through() -> None:
    config = {"name": "c", "errors.tolerance": "all"}
    conversion = SourceConversion(config, WORKER)
    for error in (CutShort("HOME_LOST"), OSError("disk"), MemoryError()):
        with pytest.raises(type(error)):
            conversion.retry(STAGE, RecordOrigin("t"), partial(_raise, error))
    with pytest.raises(RecordFailure, match=r"KeyError: 'x' \(topic t, partition 0, offset 1; value converter A\)"):
        conversion.retry(STAGE, RecordOrigin("t", 0, 1), partial(_raise, KeyError("x")))


STAGE = converter_stage("value", "a.b.A")


def _raise(error: Exception) -> None:
    raise error


def test_who_keeps_the_place_in_the_group_is_called_while_a_batch_waits_and_may_give_it_up() -> None:
    waits, tries = list[int](), list[int]()

    def on_wait() -> None:
        waits.append(len(tries))
        if len(tries) == 2:
            raise GaveUp

    def work() -> None:
        tries.append(1)
        raise RetriableConnectError("not yet")

    config = {"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "1"}
    bad = BadRecords("c", 0, Policy.of(config, sink=True), on_wait=on_wait)
    with pytest.raises(GaveUp):
        bad.retry(work)
    assert waits == [1, 2]
