"""Java source tasks against a real broker: the arguments of their calls, their exceptions.

Each record arrives once, whatever kills them.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keelman.connect.offsets import parse_key
from recorded.java.record_java_offsets import CONFIG, CONNECTOR, FILE
from support.copying.harness import OFFSET_TOPIC, latest
from support.java.kit import needs_java
from support.java.scripted_source import AT_LEAST_ONCE, Scripted
from support.java.shared_host import previewed, replayed
from support.kafka.topics import create_topic, messages
from support.places import with_tests
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def scripted(bootstrap: str, name: str, classes: Path, tmp_path: Path) -> Scripted:
    """A task whose topic has one partition."""
    create_topic(bootstrap, name)
    return Scripted(bootstrap, name, classes, tmp_path)


def test_a_task_is_told_of_each_record_with_its_place_and_goes_on_from_its_offsets(scripted: Scripted) -> None:
    second = f"{scripted.name}-b"
    fields = {"topic.creation.default.partitions": "3", "topic.creation.default.replication.factor": "1"}
    config = {"topics": f"{scripted.name},{second}", "parts": "2", "records": "100", **fields}
    with scripted.hosted(**config) as process:
        scripted.copied(100, process)
        scripted.stopped(process)
    assert scripted.values() == [f"v{n}" for n in range(0, 100, 2)]
    actual_messages = messages(scripted.bootstrap, second)
    assert sorted(int((actual_message.value() or b"")[1:]) for actual_message in actual_messages) == list(
        range(1, 100, 2)
    )
    assert {actual_message.partition() for actual_message in actual_messages} == {0, 1, 2}
    assert actual_messages[0].headers() == [("from", (actual_messages[0].key() or b"").replace(b"k", b"h"))]
    offsets_noted = dict(line.split(" ", 1) for line in scripted.noted("record"))
    for message in [*messages(scripted.bootstrap, scripted.name), *actual_messages]:
        assert (
            offsets_noted[(message.value() or b"")[1:].decode()]
            == f"{message.topic()} {message.partition()} {message.offset()}"
        )
    assert set(scripted.noted("commit")) == {"true"}
    assert scripted.calls.read_text().splitlines()[-1] == "stop"
    assert scripted.offsets() == {"p0": 98, "p1": 99}
    with scripted.hosted(**{**config, "records": "130"}) as process:
        scripted.copied(30, process)
        scripted.stopped(process)
    assert [line.split()[0] for line in scripted.noted("start")] == ["0", "100"]
    assert scripted.values() == [f"v{n}" for n in range(0, 130, 2)]


def test_what_a_task_throws_ends_its_run_behind_what_it_gave_before(scripted: Scripted) -> None:
    with scripted.hosted(fails="50") as process:
        last = scripted.ends(process)
    assert (last["state"], last["message"]) == ("FAILED", "the source is gone at 50")
    assert scripted.values() == [f"v{n}" for n in range(50)]
    assert scripted.offsets() == {"p0": 49}
    assert scripted.noted("stop") == [""]
    with scripted.hosted(start_fails="no such table") as process:
        last = scripted.ends(process)
    assert (last["state"], last["message"]) == ("FAILED", "no such table")


def test_a_poll_that_may_be_tried_again_is(scripted: Scripted) -> None:
    with scripted.hosted(retries="50") as process:
        scripted.copied(100, process)
        scripted.stopped(process)
    assert scripted.values() == [f"v{n}" for n in range(100)]


def test_a_poll_that_does_not_come_back_is_named_and_interrupted_when_its_run_is_drained(scripted: Scripted) -> None:
    with scripted.hosted(hangs="50", worker={"task.shutdown.graceful.timeout.ms": "300"}) as process:
        until(lambda: scripted.noted("hangs"), "it hangs")
        scripted.copied(50, process)
        hangs = "waits for acme.ScriptedSource$ScriptedTask.poll, which was called at "
        until(lambda: latest(scripted.log)["message"].startswith(hangs), "it says what hangs")
        scripted.stopped(process)
    assert scripted.noted("interrupted") == [""]
    assert scripted.values() == [f"v{n}" for n in range(50)]


def test_a_record_that_its_converter_cannot_take_is_a_dead_letter_with_its_stage_and_class(scripted: Scripted) -> None:
    config = {"value_converter": JSON, "value_converter_schemas_enable": "true", "bad": "17"}
    with scripted.hosted(**config) as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED"
    assert "value converter JsonConverter" in last["message"]
    assert '"n":17' in last["message"]
    dead = f"{scripted.name}-dead"
    tolerant = {
        "errors_tolerance": "all",
        "errors_deadletterqueue_topic_name": dead,
        "errors_deadletterqueue_topic_replication_factor": "1",
        "errors_deadletterqueue_context_headers_enable": "true",
    }
    with scripted.hosted(**config, **tolerant) as process:
        scripted.copied(89, process)  # the poll before it was committed by the run that failed
        scripted.stopped(process)
    assert [json.loads(value)["payload"] for value in scripted.values()] == [f"v{n}" for n in range(100) if n != 17]
    (letter,) = messages(scripted.bootstrap, dead)
    headers = dict(letter.headers() or [])
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert headers["__connect.errors.class.name"] == JSON.encode()
    assert headers["from"] == b"h17"
    assert json.loads(headers["keelman.errors.source.offset"])["n"] == 17
    assert "17 nowhere" in scripted.noted("record")
    (place,) = [message.offset() for message in messages(scripted.bootstrap, scripted.name) if message.key() == b"k18"]
    assert f"18 {scripted.name} 0 {place}" in scripted.noted("record")


def test_each_record_once_whatever_kills_its_slot(scripted: Scripted) -> None:
    second = f"{scripted.name}-b"
    create_topic(scripted.bootstrap, second, 2)
    config = {"topics": f"{scripted.name},{second}", "parts": "3", "records": "20000", "poll": "100"}
    for point in ("record in an open transaction", "offsets in an open transaction", "transaction committed"):
        with scripted.hosted(die=[point, 3], **config) as process:
            assert process.wait(60) == -signal.SIGKILL, scripted.ended_with()
    with scripted.hosted(**config) as process:
        until(lambda: max(scripted.offsets().values(), default=0) == 19999, "all is committed")
        scripted.stopped(process)
    starts = [int(line.split()[0]) for line in scripted.noted("start")]
    assert len(starts) == 4
    assert starts == sorted(starts), "each begins where those before it have committed"
    assert starts[-1] > 0
    assert scripted.values() == [f"v{n}" for n in range(0, 20000, 2)]
    assert sorted(int(value[1:]) for value in scripted.values(second)) == list(range(1, 20000, 2))


def test_transactions_end_where_the_task_wants_it(scripted: Scripted) -> None:
    config = {"transaction_boundary": "connector", "records": "100", "poll": "30"}
    with scripted.hosted(commits="25", aborts="59", **config) as process:
        scripted.copied(75, process)
        scripted.stopped(process)
    # The 60th record aborts 50 to 59, and their offsets are committed all the same.
    assert scripted.values() == [f"v{n}" for n in range(100) if not 50 <= n < 60]
    assert scripted.offsets() == {"p0": 99}
    with scripted.hosted(commits_polls="yes", **{**config, "records": "150"}) as process:
        scripted.copied(50, process)
        scripted.stopped(process)
    assert scripted.values()[-50:] == [f"v{n}" for n in range(100, 150)]


def test_records_as_they_are_in_java(scripted: Scripted) -> None:
    second = f"{scripted.name}-b"
    create_topic(scripted.bootstrap, second, 2)
    config = {"topics": second, "targets": "yes", "times": "yes", "keyless": "yes", "length": "3000", "records": "2000"}
    with scripted.hosted(poll="2000", producer_override_compression_type="lz4", **config) as process:
        scripted.copied(2000, process)
        scripted.stopped(process)
    actual_messages = messages(scripted.bootstrap, second)
    assert {
        actual_message.partition(): len(
            [1 for other in actual_messages if other.partition() == actual_message.partition()]
        )
        for actual_message in actual_messages
    } == {
        0: 1000,
        1: 1000,
    }
    for message in actual_messages:
        number = int((message.value() or b"").strip(b"vx"))
        assert (message.partition(), message.timestamp()[1], message.key()) == (number % 2, 1000 + number, None)
        assert message.headers() == [("from", b"h%d" % number)]


def test_batches_are_packed_with_every_codec() -> None:
    command = [sys.executable, "-m", "support.java.packing"]
    printed = subprocess.run(command, check=True, capture_output=True, timeout=300, env=with_tests()).stdout
    tree = json.loads(printed.splitlines()[-1])
    assert tree == dict.fromkeys(("none", "gzip", "snappy", "lz4", "zstd"), True)


def test_offsets_are_byte_for_byte_those_of_kafka_connect(scripted: Scripted) -> None:
    recorded = {key.encode(): value and value.encode() for key, value in json.loads(FILE.read_text())}
    scripted.config |= {**CONFIG, "name": CONNECTOR, "topics": scripted.name}
    with scripted.hosted() as process:
        scripted.copied(100, process)
        scripted.stopped(process)
    values = {message.key(): message.value() for message in messages(scripted.bootstrap, OFFSET_TOPIC)}
    assert {
        key: value for key, value in values.items() if parse_key(key or b"") in map(parse_key, recorded)
    } == recorded
    with scripted.hosted(records="110", nests="108") as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED"
    assert "Offsets may only contain primitive types as values, but field nested" in last["message"]


def test_a_preview_shows_what_would_be_written(classes: Path, tmp_path: Path) -> None:
    scripted = Scripted("", "previewed", classes, tmp_path)
    steps = {
        "transforms": "hoist,drop",
        "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.hoist.field": "line",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "second",
        "predicates": "second",
        "predicates.second.type": "acme.HasWord",
        "predicates.second.word": "v1",
    }
    shown = previewed(
        scripted.log,
        {
            "name": "previewed",
            "config": {**scripted.config, **steps, "value.converter": JSON, "records": "4", "bad": "3"},
            "tasks": [{**scripted.config, "records": "4", "bad": "3"}],
            "worker_config": {"key.converter": "org.apache.kafka.connect.storage.StringConverter"},
            "offsets": [],
            "from": "beginning",
            "records": 4,
            "seconds": 20,
        },
    )
    first, second, _, last = shown["records"]
    read, hoist, drop, written = first["steps"]
    assert read["record"]["key"] == {"schema": "string?", "value": "k0"}
    assert read["record"]["value"] == {"schema": "string", "value": "v0"}
    assert read["record"]["headers"] == [{"name": "from", "schema": "string", "value": "h0"}]
    assert (hoist["alias"], hoist["applied"]) == ("hoist", True)
    assert hoist["record"]["value"] == {"schema": "struct<line:string>", "value": {"line": "v0"}}
    assert (drop["applied"], drop["predicate"]["holds"], drop["record"]) == (False, False, hoist["record"])
    assert (first["outcome"], written["record"]["key"]["text"]) == ("written", "k0")
    assert json.loads(written["record"]["value"]["text"])["payload"] == {"line": "v0"}
    assert written["record"]["headers"][0]["value"] == {"bytes": 2, "text": "h0"}
    assert (second["outcome"], second["steps"][-1]["record"]) == ("dropped", None)
    assert (last["outcome"], last["error"]["stage"], last["error"]["step"]) == (
        "failed",
        "TRANSFORMATION",
        "transforms.hoist",
    )
    assert "not shown" in last["steps"][0]["record"]["value"]["value"]
    assert scripted.noted("commit") == []


def test_what_was_polled_is_copied_before_a_drained_run_ends(scripted: Scripted) -> None:
    with scripted.hosted(records="1000000", poll="100") as process:
        scripted.copied(1000, process)
        scripted.stopped(process)
    assert len(scripted.values()) == int(scripted.noted("polled")[-1])
    assert scripted.noted("stop") == [""]


def test_a_transform_that_fails_is_named_and_the_run_goes_on_without_transactions_too(scripted: Scripted) -> None:
    dead = f"{scripted.name}-dead"
    config = {
        "transforms": "cast",
        "transforms_cast_type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms_cast_spec": "int32",
        "errors_tolerance": "all",
        "errors_deadletterqueue_topic_name": dead,
        "errors_deadletterqueue_topic_replication_factor": "1",
        "errors_deadletterqueue_context_headers_enable": "true",
        "bad": "7",
    }
    with scripted.hosted(delivery=AT_LEAST_ONCE, **config) as process:
        until(lambda: scripted.offsets() == {"p0": 99}, "all is committed")
        scripted.stopped(process)
    assert scripted.values() == ["7"], "the offset that is a number already"
    letters = messages(scripted.bootstrap, dead)
    assert [json.loads(letter.value() or b"")["payload"] for letter in letters] == [
        f"v{n}" for n in range(100) if n != 7
    ]
    assert dict(letters[0].headers() or [])["__connect.errors.stage"] == b"TRANSFORMATION"
    assert f"7 {scripted.name} 0 0" in scripted.noted("record")


def test_dead_letters_are_replayed_through_steps_of_java(scripted: Scripted) -> None:
    stored = {
        "header.converter": "acme.BracketHeaders",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{scripted.name}-dead",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    broken = {
        "transforms": "cast",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.cast.spec": "int32",
    }
    with scripted.hosted(records="3", **stored, **broken) as process:
        until(lambda: scripted.offsets() == {"p0": 2}, "all are dead letters")
        scripted.stopped(process)
    mended = {
        "value.converter": "acme.ReversedConverter",
        "transforms": "shout",
        "transforms.shout.type": "acme.ShoutTransform",
        "transforms.shout.end": "!",
    }
    converters = {"key.converter": STRING, "value.converter": STRING}
    choice = {"to": "", "stage": "", "exception": "", "since_ms": None, "most": 10, "dry_run": False, "cursor": None}
    outcome = replayed(
        scripted.log,
        {
            "name": scripted.name,
            "config": {**scripted.config, **stored, **mended},
            "worker_config": {"bootstrap.servers": scripted.bootstrap, **converters},
            "sink": False,
            "seconds": 60,
            **choice,
        },
    )
    assert (outcome["sent"], outcome["failed"], outcome["lost"]) == (3, 0, 0), outcome
    assert [
        (message.key(), message.value(), message.headers()) for message in messages(scripted.bootstrap, scripted.name)
    ] == [
        (b"k%d" % n, f"{scripted.name}:V{n}!"[::-1].encode(), [("from", b"<h%d>" % n), ("seen", b"<-1>")])
        for n in range(3)
    ]


def test_a_task_without_records_is_told_of_commits_too(scripted: Scripted) -> None:
    with scripted.hosted(records="10", worker={"offset.flush.interval.ms": "300"}) as process:
        scripted.copied(10, process)
        commits = len(scripted.noted("commit"))
        until(lambda: len(scripted.noted("commit")) >= commits + 2, "its task is told again")
        scripted.stopped(process)
