"""Bad records on a real broker: dead letters of sinks and sources, exact counts, and kills in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from keelman.connect.bad_records.dead_letter import DeadLetter, read_letter
from support.copying.harness import Run, copied_to_the_end, dies_at, ticket
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = pytest.mark.component

JSON = "org.apache.kafka.connect.json.JsonConverter"
RECORDS = 3_000
BAD_EACH = 7


def tolerant(name: str, **more: str) -> dict[str, str]:
    return {
        "name": name,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"dead-{name}",
        "errors.deadletterqueue.context.headers.enable": "true",
        **more,
    }


def bad(number: int) -> bool:
    return number % BAD_EACH == 3


def fill(bootstrap: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(RECORDS):
        value = b'{"bad":%d' % number if bad(number) else b"%d" % number
        producer.produce(topic, value, b"k%d" % number, partition=number % 2, headers=[("n", b"%d" % number)])
        if number % 1_000 == 0:
            producer.flush(300)
    assert producer.flush(300) == 0


def letters(bootstrap: str, name: str) -> list[DeadLetter]:
    return [read_letter(m.key(), m.value(), m.headers()) for m in messages(bootstrap, f"dead-{name}")]


def sink(name: str, out: Path, **more: str) -> dict[str, str]:
    config = tolerant(name, **more)
    return {
        **config,
        "connector.class": "FileStreamSink",
        "topics": name,
        "file": str(out),
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
    }


def test_a_sink_passes_over_what_is_bad_and_loses_nothing_good_over_a_kill(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 2)
    fill(bootstrap, name)
    out, log = tmp_path / "out", tmp_path / "log"
    config = sink(name, out, **{"consumer.override.max.poll.records": "500"})
    dies_at(bootstrap, config, log, ("data durable", 2))
    copied_to_the_end(bootstrap, config, log)
    good = [n for n in range(RECORDS) if not bad(n)]
    assert sorted(map(int, out.read_text().split())) == good
    actual_letters = letters(bootstrap, name)
    numbers = {int(dict(letter.headers)["n"]) for letter in actual_letters}
    assert numbers == {n for n in range(RECORDS) if bad(n)}
    assert len(actual_letters) < len(numbers) + 500  # a batch may be repeated, all of it is not
    for letter in actual_letters:
        number = int(dict(letter.headers)["n"])
        assert letter.whence is not None
        assert (letter.whence.topic, letter.whence.partition) == (name, number % 2)
        assert (letter.key, letter.value) == (b"k%d" % number, b'{"bad":%d' % number)


def test_a_source_and_its_dead_letters_are_one_transaction_over_kills(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    path, log = tmp_path / "given", tmp_path / "log"
    path.write_text("".join(f"bad {n}\n" if bad(n) else f"{n}\n" for n in range(RECORDS)))
    config = tolerant(
        name,
        **{
            "connector.class": "FileStreamSource",
            "file": str(path),
            "topic": name,
            "batch.size": "300",
            "keelman.limit.records.per.second": "3000",
            "keelman.commit.interval.ms": "1",
            "transforms": "x",
            "transforms.x.type": "org.apache.kafka.connect.transforms.Cast$Value",
            "transforms.x.spec": "int32",
        },
    )
    for death in (("record in an open transaction", 1), ("offsets in an open transaction", 3)):
        dies_at(bootstrap, config, log, death)
    copied_to_the_end(bootstrap, config, log)
    assert [int(m.value()) for m in messages(bootstrap, name)] == [n for n in range(RECORDS) if not bad(n)]
    actual_letters = letters(bootstrap, name)
    texts = [json.loads(letter.value or b"")["payload"] for letter in actual_letters]
    assert texts == [f"bad {n}" for n in range(RECORDS) if bad(n)]
    assert [letter.whence and letter.whence.source_partition for letter in actual_letters[:1]] == [
        {"filename": str(path)}
    ]


def test_a_record_over_the_topics_limit_leaves_a_letter_without_it(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1, **{"max.message.bytes": "2000"})
    path = tmp_path / "given"
    path.write_text(f"one\n{'x' * 3000}\n{'y' * 2_000_000}\ntwo\n")
    source = {"connector.class": "FileStreamSource", "file": str(path), "topic": name}
    run = runs(ticket(bootstrap, tolerant(name, **source)))
    update = run.until_records(2).progress
    assert (update.records, update.errors, update.bad_records.dead_letters) == (2, 2, 2)
    run.drain()
    assert [m.value() for m in messages(bootstrap, name)] == [b"one", b"two"]
    actual_letters = letters(bootstrap, name)
    assert [(letter.value, letter.whence and letter.whence.source_offset) for letter in actual_letters] == [
        (None, {"position": 3005}),
        (None, {"position": 2_003_006}),
    ]
    assert [
        (letter.record_bytes or 0) > size for letter, size in zip(actual_letters, (3000, 2_000_000), strict=True)
    ] == [True] * 2


def test_a_task_that_fails_names_the_record_the_step_and_the_reason(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in (b"1", b"2", b"{"):
        producer.produce(name, value)
    assert producer.flush(300) == 0
    run = runs(ticket(bootstrap, sink(name, tmp_path / "out", **{"errors.tolerance": "none"})))
    failed = until(lambda: next((u for u in _updates(run) if u.trace), None), "the run fails")
    first, second = failed.trace.splitlines()[:2]
    assert first == "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler"
    assert f"(topic {name}, partition 0, offset 2; value converter JsonConverter)" in second
    assert f"(topic {name}, partition 0, offset 2; value converter JsonConverter)" in failed.message
    assert not failed.retriable


def _updates(run: Run) -> list:  # type: ignore[type-arg]
    while not run.updates.empty():
        run.seen.append(run.updates.get())
    return run.seen


def test_a_kafka_sink_leaves_out_what_its_target_does_not_take(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    create_topic(bootstrap, name, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in (b"1", b"x" * 5_000, b"2"):
        producer.produce(name, value, b"k", headers=[("h", b"1")])
    assert producer.flush(300) == 0
    config = tolerant(name, **{"connector.class": "KafkaSink", "topics": name, "topic": "to-${topic}"})
    run = runs(ticket(bootstrap, {**config, "target.cluster.max.request.size": "4000"}))
    update = run.until_records(2).progress
    run.drain()
    assert (update.records, update.errors) == (2, 1)
    assert [m.value() for m in messages(bootstrap, f"to-{name}")] == [b"1", b"2"]
    (letter,) = letters(bootstrap, name)
    assert letter.why is not None
    assert (letter.value, letter.key, letter.why.stage) == (None, b"k", "TASK_PUT")
    assert (letter.whence and letter.whence.offset, (letter.record_bytes or 0) > 5_000) == (1, True)


def test_a_kafka_sinks_dead_letters_are_in_its_transactions_over_kills(
    bootstrap: str, name: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    producer, total, log = (
        Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True}),
        2_000,
        tmp_path / "log",
    )
    for number in range(total):
        producer.produce(name, (b"x" * 5_000 if bad(number) else b"") + b"%d" % number, b"k%d" % number)
    assert producer.flush(300) == 0
    more = {"keelman.commit.interval.ms": "1", "consumer.override.max.poll.records": "100"}
    config = tolerant(name, **{"connector.class": "KafkaSink", "topics": name, "topic": "to-${topic}"}, **more)
    config["target.cluster.max.request.size"] = "4000"
    for death in (("offsets in an open transaction", 2), ("transaction committed", 1)):
        dies_at(bootstrap, config, log, death)
    copied_to_the_end(bootstrap, config, log)
    keys = [letter.key for letter in letters(bootstrap, name)]
    assert keys == [b"k%d" % n for n in range(total) if bad(n)]
    assert [int(m.value() or b"") for m in messages(bootstrap, f"to-{name}")] == [n for n in range(total) if not bad(n)]
    assert len(messages(bootstrap, f"dead-{name}", "read_uncommitted")) > len(keys), "no kill came amid letters"
