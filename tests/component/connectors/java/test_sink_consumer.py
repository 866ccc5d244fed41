"""Kafka's own consumer under Java sinks: ends after markers, deleted records, limits, a login that fails."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from keelman.api.copy.v1.ticket_pb2 import DELIVERY_GUARANTEE_AT_LEAST_ONCE
from support.copying.harness import hosted, latest
from support.java.kit import needs_java
from support.java.scripted_sink import Scripted
from support.kafka.topics import create_topic
from support.waiting import until

pytestmark = [pytest.mark.component, needs_java()]


def test_what_stands_behind_the_last_record_is_no_lag(scripted: Scripted) -> None:
    producer = Producer({"bootstrap.servers": scripted.bootstrap, "transactional.id": scripted.name})
    producer.init_transactions(60)
    for values, commits in ((["v0", "v1"], True), (["never"], False), (["v2"], True)):
        producer.begin_transaction()
        for value in values:
            producer.produce(scripted.name, value.encode(), key=b"k", headers=[("h", b"0")])
        producer.flush(300)
        (producer.commit_transaction if commits else producer.abort_transaction)(60)
    with scripted.hosted() as process:
        scripted.until_put(process, ["v0", "v1", "v2"])
        # Four records and a marker after each transaction.
        until(lambda: scripted.group() == 7, "the group shows the end")
        until(lambda: latest(scripted.log).get("lag") == 0, "no lag")
        scripted.stopped(process)


def test_a_task_goes_on_where_its_log_begins_by_now(scripted: Scripted) -> None:
    scripted.send([f"v{n}" for n in range(10)])
    with scripted.hosted() as process:
        until(lambda: scripted.group() == 10, "committed")
        scripted.stopped(process)
    scripted.send([f"v{n}" for n in range(10, 20)])
    client = AdminClient({"bootstrap.servers": scripted.bootstrap})
    place = TopicPartition(scripted.name, 0, 15)
    client.delete_records([place])[place].result(300)
    scripted.calls.unlink()
    with scripted.hosted() as process:
        scripted.until_put(process, [f"v{n}" for n in range(15, 20)])
        until(lambda: scripted.group() == 20, "committed")
        scripted.stopped(process)


def test_a_limit_holds_and_gives_each_record_once(scripted: Scripted) -> None:
    create_topic(scripted.bootstrap, f"{scripted.name}-b", 2)
    values = [f"v{n}" for n in range(900)]
    scripted.send(values[:600], f"{scripted.name}-b")
    scripted.send(values[600:])
    both = {"topics": f"{scripted.name},{scripted.name}-b", "keelman_limit_records_per_second": "200"}
    with scripted.hosted(**both) as process:
        scripted.until_put(process, values)
        scripted.stopped(process)
    assert len(scripted.values()) == len(values)


def test_a_broker_that_does_not_answer_its_login_fails_the_task_with_the_reason(scripted: Scripted) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    login = {
        "consumer_override_security_protocol": "SASL_PLAINTEXT",
        "consumer_override_sasl_mechanism": "PLAIN",
        "consumer_override_sasl_jaas_config": f'{module} username="a" password="b";',
    }
    with scripted.hosted(**login) as process:
        last = scripted.ends(process)
    assert last["state"] == "FAILED"
    assert "SASL" in last["message"], last


def test_slots_with_our_consumer_and_with_javas_share_a_group_while_one_takes_the_others_place(
    scripted: Scripted, tmp_path: Path
) -> None:
    """As during a roll-out from a version that read Java's sinks with our consumer: nothing lost, nothing doubled."""
    topic = f"{scripted.name}-b"
    create_topic(scripted.bootstrap, topic, 4)
    values = [f"v{n}" for n in range(600)]
    files = [tmp_path / f"old-{task}" for task in range(2)]

    def old(task: int) -> Any:
        config = {
            "name": scripted.name,
            "connector.class": "FileStreamSink",
            "topics": topic,
            "file": str(files[task]),
        }
        fields = {
            "task": task,
            "delivery": DELIVERY_GUARANTEE_AT_LEAST_ONCE,
            "worker_config": {"keelman.commit.interval.ms": "300"},
        }
        return hosted(scripted.bootstrap, config, tmp_path / f"old-{task}.log", fields=fields)

    def lines(task: int) -> list[str]:
        return files[task].read_text().splitlines() if files[task].exists() else []

    def until_copied(count: int) -> None:
        def copied() -> bool:
            results = [*lines(0), *lines(1), *scripted.values()]
            assert len(results) <= count or sorted(results) == sorted(set(results)), "nothing twice"
            return sorted(results) == sorted(values[:count])

        until(copied, f"{count} are copied")

    with ExitStack() as stack:
        first, second = (stack.enter_context(old(task)) for task in range(2))
        scripted.send(values[:200], topic)
        until_copied(200)
        until(lambda: latest(tmp_path / "old-1.log").get("state") == "RUNNING", "the second can be drained")
        scripted.stopped(second)
        new = stack.enter_context(scripted.hosted(topics=topic, task=1))
        until(lambda: scripted.noted("open"), "the new one has partitions")
        until(lambda: len(scripted.noted("open")[-1].split(" of ")[0].split(",")) == 2, "both share the topic")
        before = len(lines(0))
        scripted.send(values[200:400], topic)
        until_copied(400)
        assert scripted.values(), "the new one has copied some"
        assert len(lines(0)) > before, "and so has the old one"
        scripted.stopped(first)
        other = stack.enter_context(scripted.hosted(topics=topic, task=0))
        scripted.send(values[400:], topic)
        until_copied(600)
        scripted.stopped(new)
        scripted.stopped(other)
    assert sum(scripted.group(topic, n) for n in range(4)) == 600
