"""Java sink tasks against a real broker: the arguments of their calls, their requests and exceptions.

No record is lost, whatever kills them.
"""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack

import pytest

from support.copying.harness import latest
from support.java.kit import needs_java
from support.java.scripted_sink import Scripted
from support.java.shared_host import previewed
from support.kafka.topics import create_topic, messages
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]

JSON = "org.apache.kafka.connect.json.JsonConverter"


def test_a_task_lives_as_in_connect_and_its_group_shows_what_it_says(scripted: Scripted) -> None:
    scripted.send(["v0", "v1", "v2"])
    with scripted.hosted() as process:
        scripted.until_put(process, ["v0", "v1", "v2"])
        scripted.stopped(process)
    name = scripted.name
    # A commit may be due before the first records, as in Connect.
    lines = [line for line in scripted.calls.read_text().splitlines() if line != "precommit 0"]
    assert lines[:2] == [f"start {name} task-thread-{name}-0", f"open {name}-0 of {name}-0"]
    assert lines[2:5] == [f"record {name} 0 {n} k{n} v{n} {scripted.sent_ms + n} h={n}" for n in range(3)]
    assert lines[-3:] == ["precommit 3", f"close {name}-0", "stop"]
    assert scripted.group() == 3
    scripted.send(["v3"])
    with scripted.hosted() as process:
        scripted.until_put(process, ["v0", "v1", "v2", "v3"])
        scripted.stopped(process)


def test_what_the_task_holds_back_is_given_again(scripted: Scripted) -> None:
    scripted.send([f"v{n}" for n in range(10)])
    with scripted.hosted(behind="4") as process:
        scripted.until_put(process, [f"v{n}" for n in range(10)])
        scripted.stopped(process)
    assert scripted.group() == 6
    scripted.calls.unlink()
    with scripted.hosted(opts_out="yes") as process:
        scripted.until_put(process, [f"v{n}" for n in range(6, 10)])
        scripted.stopped(process)
    assert scripted.group() == 6


def test_what_a_task_throws_fails_it_and_what_may_pass_is_put_again(scripted: Scripted) -> None:
    scripted.send([f"v{n}" for n in range(20)])
    with scripted.hosted(fails="12") as process:
        last = scripted.ends(process)
    assert (last["state"], last["message"]) == ("FAILED", "the sink is gone at 12")
    assert [line.split(" ")[0] for line in scripted.calls.read_text().splitlines()][-2:] == ["close", "stop"]
    assert scripted.group() < 0
    with scripted.hosted(retries="3") as process:
        scripted.until_put(process, [f"v{n}" for n in range(20)])
        scripted.stopped(process)
    assert len(scripted.noted("retry")) == 3
    with scripted.hosted(start_fails="no such table") as process:
        last = scripted.ends(process)
    assert (last["state"], last["message"]) == ("FAILED", "no such table")


def test_a_precommit_that_fails_has_the_records_given_again(scripted: Scripted) -> None:
    scripted.send(["v0", "v1", "v2"])
    with scripted.hosted(commit_fails="yes") as process:
        until(lambda: scripted.values() == ["v0", "v1", "v2"] * 2, "given again")
        until(lambda: scripted.group() == 3, "committed")
        scripted.stopped(process)


def test_a_precommit_that_fails_behind_a_seek_has_the_records_from_there_given_again(scripted: Scripted) -> None:
    scripted.send([f"v{n}" for n in range(10)])
    request = {"keelman.commit.interval.ms": "600000"}
    with scripted.hosted(
        worker=request, asks_commits="2", commit_fails="yes", rewinds_at="1", rewinds_to="5"
    ) as process:
        twice = [f"v{n}" for n in range(5, 10)] * 2
        until(lambda: scripted.values() == [*[f"v{n}" for n in range(10)], *twice], "given again")
        until(lambda: scripted.group() == 10, "committed")
        scripted.stopped(process)


def test_a_task_is_flushed_as_often_as_its_worker_says(scripted: Scripted) -> None:
    fields = {"keelman.commit.interval.ms": "", "offset.flush.interval.ms": "2000"}
    sent: list[str] = []
    with scripted.hosted(worker=fields) as process:
        until(lambda: scripted.noted("open"), "it has its partition")
        begun = time.monotonic()

        def flushed() -> bool:
            sent.append(f"v{len(sent)}")
            scripted.send(sent[-1:])
            return len(scripted.noted("precommit")) >= 3

        until(flushed, "it is flushed three times", every=0.1)
        assert time.monotonic() - begun > 4, "two intervals lie between"
        scripted.stopped(process)


def test_what_is_not_flushed_counts_and_is_given_again_to_the_next(scripted: Scripted) -> None:
    scripted.send(["v0", "v1"])
    with scripted.hosted(worker={"keelman.commit.interval.ms": ""}) as process:  # a minute, as with Connect
        until(lambda: latest(scripted.log).get("records") == 2, "what is written counts")
        assert (scripted.noted("precommit"), latest(scripted.log)["lag"]) == ([], 0)
        process.kill()
        process.wait()
    assert scripted.group() < 0
    with scripted.hosted() as process:
        until(lambda: scripted.values() == ["v0", "v1", "v0", "v1"], "given again")
        scripted.stopped(process)


def test_a_task_seeks_when_it_opens_and_whenever_it_likes(scripted: Scripted) -> None:
    scripted.send([f"v{n}" for n in range(10)])
    with scripted.hosted(opens_at="7", rewinds_at="1", rewinds_to="5") as process:
        until(lambda: scripted.values() == [*["v7", "v8", "v9"], *[f"v{n}" for n in range(5, 10)]], "went back")
        until(lambda: scripted.group() == 10, "committed")
        scripted.stopped(process)


def test_a_task_pauses_its_partitions_and_resumes_them(scripted: Scripted) -> None:
    scripted.send(["v0", "v1"])
    with scripted.hosted(pauses_at="1", resumes_after="3") as process:
        until(lambda: scripted.noted("pause"), "it pauses")
        scripted.send(["v2"])
        scripted.until_put(process, ["v0", "v1", "v2"])
        scripted.stopped(process)
    # It was resumed in the third put without records, a second after the other.
    assert len(scripted.noted("pause")) == 1


def test_what_a_put_asks_for_holds_for_what_was_read_meanwhile(scripted: Scripted) -> None:
    values = [f"v{n}" for n in range(2000)]
    scripted.send(values)
    small = {"consumer_override_max_poll_records": "50"}
    with scripted.hosted(**small, pauses_at="3", resumes_after="2", rewinds_at="6", rewinds_to="100") as process:
        until(lambda: scripted.noted("precommit")[-1:] == ["2000"], "all are committed")
        scripted.stopped(process)
    words = [line.split(" ")[0] for line in scripted.calls.read_text().splitlines()]
    paused = words[words.index("pause") : words.index("resume")]
    assert set(paused) <= {"pause", "precommit"}, "nothing is given to a task that has paused"
    assert words.count("record") == len(scripted.values())
    begun = scripted.values().index("v100", 101)
    assert begun < 400
    assert scripted.values() == values[:begun] + values[100:], "once each, in their order, again from where it went"


def test_a_put_that_fails_takes_nothing_with_it_that_was_read_meanwhile(scripted: Scripted) -> None:
    values = [f"v{n}" for n in range(2000)]
    scripted.send(values)
    small = {"consumer_override_max_poll_records": "50", "asks_commits": "1"}
    with scripted.hosted(**small, fails="1020", retries="2") as process:
        last = scripted.ends(process)
    assert (last["state"], last["message"]) == ("FAILED", "the sink is gone at 1020")
    assert scripted.values() == values[:1000]
    assert scripted.group() <= 1000
    dead = f"{scripted.name}-dead"
    tolerant = {
        "errors_tolerance": "all",
        "errors_deadletterqueue_topic_name": dead,
        "errors_deadletterqueue_topic_replication_factor": "1",
    }
    begun = max(0, scripted.group())
    scripted.calls.unlink()
    with scripted.hosted(**small, **tolerant, bad="v1234") as process:
        until(lambda: scripted.noted("precommit")[-1:] == ["2000"], "all are committed")
        scripted.stopped(process)
    assert scripted.values() == [value for value in values[begun:] if value != "v1234"]
    (letter,) = messages(scripted.bootstrap, dead)
    assert (letter.key(), letter.value(), letter.headers()) == (b"k1234", b"v1234", [("h", b"1234")])


def test_what_is_next_is_not_put_before_a_put_that_fails(scripted: Scripted) -> None:
    values = [f"v{n}" for n in range(400)]
    scripted.send(values)
    slow = {"consumer_override_max_poll_records": "50", "takes_ms": "200"}  # the next ones are ready by then
    with scripted.hosted(**slow, fails="120") as process:
        last = scripted.ends(process)
    assert (last["state"], last["message"]) == ("FAILED", "the sink is gone at 120")
    assert scripted.values() == values[:100]
    begun = max(0, scripted.group())
    scripted.calls.unlink()
    with scripted.hosted(**slow, retries_at="3") as process:
        until(lambda: scripted.noted("precommit")[-1:] == ["400"], "all are committed")
        scripted.stopped(process)
    assert scripted.noted("retry") == ["50"]
    assert scripted.values() == values[begun:], "once each, in their order"


def test_bad_records_are_dead_letters_with_their_stage(scripted: Scripted) -> None:
    scripted.send(['"v0"', "no json", '"v2"', '"v3"', '"v4"'])
    dead = f"{scripted.name}-dead"
    json = {"value_converter": JSON, "value_converter_schemas_enable": "false"}
    with scripted.hosted(**json) as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED"
    assert "value converter JsonConverter" in last["message"]
    with scripted.hosted(**json, bad="v2", errors_log_enable="true") as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED"
    tolerant = {
        "errors_tolerance": "all",
        "errors_deadletterqueue_topic_name": dead,
        "errors_deadletterqueue_topic_replication_factor": "1",
        "errors_deadletterqueue_context_headers_enable": "true",
    }
    scripted.calls.unlink()
    with scripted.hosted(**json, **tolerant, bad="v2", bad_later="v3") as process:
        scripted.until_put(process, ["v0", "v4"])
        until(lambda: scripted.group() == 5, "committed")
        scripted.stopped(process)
    headers = {letter.value(): dict(letter.headers() or []) for letter in messages(scripted.bootstrap, dead)}
    stages = {value: headers["__connect.errors.stage"] for value, headers in headers.items()}
    assert stages == {b"no json": b"VALUE_CONVERTER", b'"v2"': b"TASK_PUT", b'"v3"': b"TASK_PUT"}
    assert headers[b"no json"]["__connect.errors.class.name"] == JSON.encode()
    assert headers[b'"v2"']["__connect.errors.exception.message"] == b"bad: v2"
    assert headers[b'"v2"']["__connect.errors.exception.class.name"] == b"java.lang.IllegalArgumentException"
    assert headers[b'"v3"']["h"] == b"3"


def test_a_put_that_does_not_come_back_is_interrupted_when_its_run_is_drained(scripted: Scripted) -> None:
    scripted.send(["v0"])
    with scripted.hosted(hangs_at="1", worker={"task.shutdown.graceful.timeout.ms": "300"}) as process:
        until(lambda: scripted.noted("hangs"), "it hangs")
        scripted.stopped(process)
    assert scripted.noted("interrupted") == [""]
    assert scripted.group() < 0


def test_two_tasks_share_the_partitions_and_lose_nothing(scripted: Scripted) -> None:
    other = f"{scripted.name}-b"
    create_topic(scripted.bootstrap, other, 4)
    values = [f"v{n}" for n in range(400)]
    scripted.send(values[:200], other)
    with ExitStack() as stack:
        first = stack.enter_context(scripted.hosted(topics=other))
        scripted.until_put(first, values[:200])
        second = stack.enter_context(scripted.hosted(topics=other, task=1))
        until(lambda: len(scripted.noted("open")) >= 3, "both have some")
        scripted.send(values[200:], other)
        scripted.until_put(second, values)
        scripted.stopped(first)
        scripted.stopped(second)
    assert sum(scripted.group(other, n) for n in range(4)) == 400


def test_while_a_put_takes_long_another_task_may_join(scripted: Scripted) -> None:
    other = f"{scripted.name}-b"
    create_topic(scripted.bootstrap, other, 2)
    values = [f"v{n}" for n in range(100)]
    scripted.send(values, other)
    with ExitStack() as stack:
        first = stack.enter_context(scripted.hosted(topics=other, hangs_at="1", hangs_ms="8000"))
        until(lambda: scripted.noted("hangs"), "it takes long")
        second = stack.enter_context(scripted.hosted(topics=other, task=1))
        until(lambda: set(scripted.values()) == set(values), "all are there")
        until(lambda: sum(max(0, scripted.group(other, n)) for n in range(2)) == 100, "all are committed")
        scripted.stopped(first)
        scripted.stopped(second)
    lines = [line for line in scripted.calls.read_text().splitlines() if line.split(" ")[0] in ("open", "close")]
    assert lines[0].startswith(f"open {other}-0,{other}-1")
    assert lines[1].startswith(f"close {other}-0,{other}-1"), "once the put had come back"


@pytest.mark.parametrize("count", [2, 12])
def test_no_record_is_lost_whatever_kills_its_slot(scripted: Scripted, count: int) -> None:
    values = [f"v{n}" for n in range(20_000)]
    scripted.send(values)
    with scripted.hosted(
        die=["group told", count], asks_commits="1", consumer_override_max_poll_records="500"
    ) as process:

        def ended() -> bool:
            if process.poll() is not None:
                return True
            values.append(f"v{len(values)}")  # slow commits are fewer than batches: there must be more
            scripted.send(values[-1:])
            return False

        until(ended, "it is killed")
        assert process.wait() == -signal.SIGKILL, scripted.ended_with()
    with scripted.hosted() as process:
        until(lambda: len(scripted.noted("open")) == 2, "it has begun again")
        until(lambda: scripted.noted("precommit")[-1:] == [str(len(values))], "all are committed")
        scripted.stopped(process)
    assert set(scripted.values()) == set(values)


def test_a_preview_shows_what_the_task_would_be_given(scripted: Scripted) -> None:
    scripted.send(['{"id": 7, "name": "seven"}', "no JSON"])
    steps = {
        "transforms": "only",
        "transforms.only.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
        "transforms.only.field": "name",
    }
    shown = previewed(
        scripted.log,
        {
            "name": scripted.name,
            "config": {**scripted.config, **steps, "value.converter": JSON, "value.converter.schemas.enable": "false"},
            "tasks": [],
            "worker_config": {
                "bootstrap.servers": scripted.bootstrap,
                "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            },
            "offsets": [],
            "from": "beginning",
            "records": 2,
            "seconds": 30,
        },
    )
    first, last = shown["records"]
    read, converted, only = first["steps"]
    assert read["record"]["value"]["text"] == '{"id": 7, "name": "seven"}'
    assert converted["record"]["key"] == {"schema": "string?", "value": "k0"}
    assert converted["record"]["value"]["value"] == {"id": 7, "name": "seven"}
    assert (converted["record"]["offset"], converted["record"]["timestamp_ms"]) == (0, scripted.sent_ms)
    assert [header["name"] for header in converted["record"]["headers"]] == ["h"]
    assert (first["outcome"], only["record"]["value"]["value"]) == ("given", "seven")
    assert (last["outcome"], last["error"]["stage"]) == ("failed", "VALUE_CONVERTER")
    assert scripted.calls.exists() is False, "no task is started"
