"""Java sink tasks in processes of their own, against a real broker: what they are called with, what they ask for, what
they throw, and no record lost, whatever kills them."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.copy_harness import create_topic, hosted, latest, messages, until
from support.java_kit import compiled, needs_java

pytestmark = [pytest.mark.component, needs_java()]

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(scope="session")
async def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kit's Java classes."""
    return await compiled(tmp_path_factory.mktemp("classes"))


class Scripted:
    """Tasks of acme.ScriptedSink: their configuration, what they note, and what their group shows."""

    def __init__(self, bootstrap: str, name: str, classes: Path, folder: Path) -> None:
        self.bootstrap, self.name = bootstrap, name
        self.sent_ms = time.time_ns() // 1_000_000
        self.calls, self.log = folder / "calls", folder / "log"
        self.config = {
            "name": name,
            "connector.class": "acme.ScriptedSink",
            "task.class": "acme.ScriptedSink$ScriptedTask",
            "classes": str(classes),
            "log": str(self.calls),
            "topics": name,
        }

    def hosted(
        self, die: list[Any] | None = None, worker: dict[str, str] | None = None, task: int = 0, **config: Any
    ) -> Any:
        """A process that copies, with these keys too, in which an underscore stands for a dot."""
        workers = {"keelman.commit.interval.ms": "300", **(worker or {})}
        spec: dict[str, Any] = {"fields": {"worker_config": workers, "task": task}, **({"die": die} if die else {})}
        given = {**self.config, **{key.replace("_", "."): value for key, value in config.items()}}
        self.log.unlink(missing_ok=True)
        return hosted(self.bootstrap, given, self.log, program="support.java_kit", **spec)

    def send(self, values: list[str], topic: str = "", **more: Any) -> None:
        """Records with keys, headers and a time."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for n, value in enumerate(values):
            given = {"key": f"k{n}", "headers": [("h", str(n).encode())], "timestamp": self.sent_ms + n, **more}
            producer.produce(topic or self.name, value.encode(), **given)
        assert producer.flush(60) == 0

    def noted(self, word: str) -> list[str]:
        """What the task noted under a word, in order."""
        text = self.calls.read_text() if self.calls.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines() if line.split(" ")[0] == word]

    def values(self) -> list[str]:
        """Those of the records that were put, in order; a kill may leave half a line, which counts for nothing."""
        lines = [line.split(" ") for line in self.noted("record")]
        return [fields[4] for fields in lines if len(fields) == 7]

    def group(self, topic: str = "", partition: int = 0) -> int:
        """The offset that the group shows."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"connect-{self.name}"})
        (found,) = consumer.committed([TopicPartition(topic or self.name, partition)], timeout=30)
        consumer.close()
        return int(found.offset)

    def until_put(self, process: Popen[bytes], values: list[str]) -> None:
        """Returns once just these were put, in any order."""

        def done() -> bool:
            assert process.poll() is None, self.ended_with()
            return sorted(self.values()) == sorted(values)

        try:
            until(done, self.name, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.values()[-5:]}\n{self.ended_with()}") from error

    def ended_with(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-4000:]

    def stopped(self, process: Popen[bytes]) -> None:
        """Drains it."""
        process.terminate()
        assert process.wait(60) == 0, self.ended_with()

    def ends(self, process: Popen[bytes]) -> dict[str, Any]:
        """The last that is heard of a process that is about to end by itself."""
        until(lambda: process.poll() is not None, f"{self.name} ends: {self.ended_with()}", 60)
        return latest(self.log)


@pytest.fixture
def scripted(bootstrap: str, name: str, classes: Path, tmp_path: Path) -> Scripted:
    """A task whose topic has one partition."""
    create_topic(bootstrap, name)
    return Scripted(bootstrap, name, classes, tmp_path)


def test_a_task_lives_as_in_connect_and_its_group_shows_what_it_says(scripted: Scripted) -> None:
    scripted.send(["v0", "v1", "v2"])
    with scripted.hosted() as process:
        scripted.until_put(process, ["v0", "v1", "v2"])
        scripted.stopped(process)
    name = scripted.name
    lines = scripted.calls.read_text().splitlines()
    assert lines[:2] == [f"start {name} java-{name}-0", f"open {name}-0 of {name}-0"]
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
        until(lambda: scripted.values() == ["v0", "v1", "v2"] * 2, "given again", 60)
        until(lambda: scripted.group() == 3, "committed", 60)
        scripted.stopped(process)


def test_a_task_seeks_when_it_opens_and_whenever_it_likes(scripted: Scripted) -> None:
    scripted.send([f"v{n}" for n in range(10)])
    with scripted.hosted(opens_at="7", rewinds_at="1", rewinds_to="5") as process:
        until(lambda: scripted.values() == [*["v7", "v8", "v9"], *[f"v{n}" for n in range(5, 10)]], "went back", 60)
        until(lambda: scripted.group() == 10, "committed", 60)
        scripted.stopped(process)


def test_a_task_pauses_its_partitions_and_resumes_them(scripted: Scripted) -> None:
    scripted.send(["v0", "v1"])
    with scripted.hosted(pauses_at="1", resumes_after="3") as process:
        until(lambda: scripted.noted("pause"), "it pauses", 60)
        scripted.send(["v2"])
        scripted.until_put(process, ["v0", "v1", "v2"])
        scripted.stopped(process)
    # It was resumed in the third put of nothing, a second after the other.
    assert len(scripted.noted("pause")) == 1


def test_what_a_put_asks_for_holds_for_what_was_read_meanwhile(scripted: Scripted) -> None:
    values = [f"v{n}" for n in range(2000)]
    scripted.send(values)
    small = {"consumer_override_max_poll_records": "50"}
    with scripted.hosted(**small, pauses_at="3", resumes_after="2", rewinds_at="6", rewinds_to="100") as process:
        until(lambda: scripted.noted("precommit")[-1:] == ["2000"], "all are committed", 60)
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
    small = {"consumer_override_max_poll_records": "50", "asks_commits": "yes"}
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
        until(lambda: scripted.noted("precommit")[-1:] == ["2000"], "all are committed", 60)
        scripted.stopped(process)
    assert scripted.values() == [value for value in values[begun:] if value != "v1234"]
    (letter,) = messages(scripted.bootstrap, dead)
    assert (letter.key(), letter.value(), letter.headers()) == (b"k1234", b"v1234", [("h", b"1234")])


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
        until(lambda: scripted.group() == 5, "committed", 60)
        scripted.stopped(process)
    found = {letter.value(): dict(letter.headers() or []) for letter in messages(scripted.bootstrap, dead)}
    stages = {value: headers["__connect.errors.stage"] for value, headers in found.items()}
    assert stages == {b"no json": b"VALUE_CONVERTER", b'"v2"': b"TASK_PUT", b'"v3"': b"TASK_PUT"}
    assert found[b"no json"]["__connect.errors.class.name"] == JSON.encode()
    assert found[b'"v2"']["__connect.errors.exception.message"] == b"bad: v2"
    assert found[b'"v2"']["__connect.errors.exception.class.name"] == b"java.lang.IllegalArgumentException"
    assert found[b'"v3"']["h"] == b"3"


def test_a_put_that_does_not_come_back_is_interrupted_when_its_run_is_drained(scripted: Scripted) -> None:
    scripted.send(["v0"])
    with scripted.hosted(hangs_at="1", worker={"task.shutdown.graceful.timeout.ms": "300"}) as process:
        until(lambda: scripted.noted("hangs"), "it hangs", 60)
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
        until(lambda: len(scripted.noted("open")) >= 3, "both have some", 60)
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
        until(lambda: scripted.noted("hangs"), "it takes long", 60)
        second = stack.enter_context(scripted.hosted(topics=other, task=1))
        until(lambda: set(scripted.values()) == set(values), "all are there", 60)
        until(lambda: sum(max(0, scripted.group(other, n)) for n in range(2)) == 100, "all are committed", 60)
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
        die=["group told", count], asks_commits="yes", consumer_override_max_poll_records="500"
    ) as process:

        def ended() -> bool:
            if process.poll() is not None:
                return True
            values.append(f"v{len(values)}")  # commits that take long are fewer than batches: there have to be more
            scripted.send(values[-1:])
            return False

        until(ended, "it is killed", 60)
        assert process.wait() == -signal.SIGKILL, scripted.ended_with()
    with scripted.hosted() as process:
        until(lambda: len(scripted.noted("open")) == 2, "it has begun again", 60)
        until(lambda: scripted.noted("precommit")[-1:] == [str(len(values))], "all are committed", 60)
        scripted.stopped(process)
    assert set(scripted.values()) == set(values)
