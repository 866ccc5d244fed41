"""A connector's transforms on the way into Kafka and out of it, on a real broker."""

import codecs
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.copying.harness import Run, ticket
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms."


def chain(**steps: dict[str, str]) -> dict[str, str]:
    """The configuration of a chain; a step's alias and own keys, `type` among them."""
    keys = {f"transforms.{alias}.{key}": value for alias, own in steps.items() for key, value in own.items()}
    return {"transforms": ",".join(steps), **keys}


def test_lines_become_structs_in_topics_of_their_own(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    path = tmp_path / "given.txt"
    path.write_bytes(b'plain\nwith "quotes"\n\xc3\xbcml\xc3\xa4ut\n')
    config = {
        "name": name,
        "connector.class": "FileStreamSource",
        "file": str(path),
        "topic": name,
        "value.converter": JSON,
        "value.converter.schemas.enable": "true",
        **chain(
            hoist={"type": f"{TRANSFORMS}HoistField$Value", "field": "line"},
            insert={"type": f"{TRANSFORMS}InsertField$Value", "static.field": "from", "static.value": "a file"},
            mark={"type": "InsertHeader", "header": "h", "value.literal": "[1,2]"},
            route={"type": f"{TRANSFORMS}RegexRouter", "regex": "(.*)", "replacement": "$1-x"},
        ),
    }
    runs(ticket(bootstrap, config)).copied(3)
    actual_messages = messages(bootstrap, f"{name}-x")
    values = [json.loads(message.value()) for message in actual_messages]
    assert [value["payload"] for value in values] == [
        {"line": line, "from": "a file"} for line in ("plain", 'with "quotes"', "ümläut")
    ]
    assert {field["field"]: field["optional"] for field in values[0]["schema"]["fields"]} == {
        "line": False,
        "from": True,
    }
    assert [message.headers() for message in actual_messages] == [[("h", b"[1,2]")]] * 3
    assert messages(bootstrap, name) == [], "the first topic gets nothing"


def test_lines_carry_the_time_at_which_they_were_read(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    """The same as with Connect's FileStreamSourceTask; transforms see the time, and Kafka has exactly the same."""
    created = f"{name}-{datetime.now(UTC):%Y}"
    create_topic(bootstrap, created, 1)
    path = tmp_path / "given.txt"
    path.write_bytes(b"one\ntwo\n")
    begun = time.time_ns() // 1_000_000
    config = {
        "name": name,
        "connector.class": "FileStreamSource",
        "file": str(path),
        "topic": name,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **chain(
            hoist={"type": f"{TRANSFORMS}HoistField$Value", "field": "line"},
            insert={"type": f"{TRANSFORMS}InsertField$Value", "timestamp.field": "read"},
            route={"type": f"{TRANSFORMS}TimestampRouter", "timestamp.format": "yyyy"},
        ),
    }
    runs(ticket(bootstrap, config)).copied(2)
    actual_messages = messages(bootstrap, created)
    times = [message.timestamp()[1] for message in actual_messages]
    assert [json.loads(actual_message.value()) for actual_message in actual_messages] == [
        {"line": line, "read": read} for line, read in zip(("one", "two"), times, strict=True)
    ]
    assert all(begun <= single_time <= time.time_ns() // 1_000_000 for single_time in times)


def test_records_are_filtered_and_taken_apart_before_a_sink(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(6):
        value = None if number % 3 == 2 else json.dumps({"id": number, "name": f"n{number}"}).encode()
        producer.produce(name, value, headers=[("even", b"")] if number % 2 == 0 else None)
    assert producer.flush(300) == 0
    out = tmp_path / "out.txt"
    config = {
        "name": f"{name}-out",
        "connector.class": "FileStreamSink",
        "file": str(out),
        "topics": name,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **chain(
            drop={"type": "Filter", "predicate": "nothing"},
            even={"type": "Filter", "predicate": "even", "negate": "true"},
            name={"type": f"{TRANSFORMS}ExtractField$Value", "field": "name"},
        ),
        "predicates": "nothing,even",
        "predicates.nothing.type": "RecordIsTombstone",
        "predicates.even.type": f"{TRANSFORMS}predicates.HasHeaderKey",
        "predicates.even.name": "even",
    }
    runs(ticket(bootstrap, config)).copied(6)
    assert out.read_text() == "n0\nn4\n"


def test_a_step_that_cannot_take_a_record_is_named(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path
) -> None:
    create_topic(bootstrap, name, 1)
    path = tmp_path / "given.txt"
    path.write_bytes(b"1\nx\n")
    step = {"type": f"{TRANSFORMS}Cast$Value", "spec": "int8"}
    config = {"name": name, "connector.class": "FileStreamSource", "file": str(path), "topic": name}
    run = runs(ticket(bootstrap, {**config, "value.converter": STRING, **chain(number=step)}))
    last = run.until_state("FAILED")
    assert "Value (x) was out of range for requested data type (" in last.message
    assert "transform number: Cast$Value)" in last.message
    assert messages(bootstrap, name) == []


TIMED = {
    "type": "int64",
    "optional": True,
    "field": "t",
    "name": "org.apache.kafka.connect.data.Timestamp",
    "version": 1,
}
FAR = {"schema": {"type": "struct", "fields": [TIMED]}, "payload": {"t": -62_135_769_600_000}}
OF_OTHERS = (b'{"n":1}', codecs.BOM_UTF8 + b'{"n":2}', '{"n":3}'.encode("utf-16"), '{"n":4}'.encode("utf-32-be"))
TOO_LONG = b'{"n":%b}' % (b"9" * 1001)


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ((*OF_OTHERS, TOO_LONG), "{n=1}\n{n=2}\n{n=3}\n{n=4}\n"),
        ((json.dumps(FAR).encode(), TOO_LONG), "Struct{t=Sat Jan 01 00:00:00 UTC 1}\n"),
    ],
    ids=["encodings", "a far time"],
)
def test_json_of_other_writers_reaches_a_sink_as_through_connect(
    bootstrap: str, name: str, runs: Callable[..., Run], tmp_path: Path, *, values: tuple[bytes, ...], lines: str
) -> None:
    """The lines are those of Apache Kafka Connect 4.3 with the same configuration; the last value is a bad record."""
    create_topic(bootstrap, name, 1)
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(name, value)
    assert producer.flush(300) == 0
    out = tmp_path / "out.txt"
    config = {
        "name": f"{name}-out",
        "connector.class": "FileStreamSink",
        "file": str(out),
        "topics": name,
        "value.converter": JSON,
        "value.converter.schemas.enable": str(values[0].startswith(b'{"schema"')).lower(),
        "errors.tolerance": "all",
    }
    runs(ticket(bootstrap, config)).copied(len(values) - 1)
    assert out.read_text() == lines
