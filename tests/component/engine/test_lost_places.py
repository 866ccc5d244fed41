"""Tasks of a Kafka sink that lose their places: their writes are never committed beside their successors'."""

import json
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from component.engine.test_sinks import all_read, file_sink, kafka_sink, numbers_by_partition, produce
from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_FAILED, COPY_RUN_STATE_RUNNING
from keelman.connect.plugin import KeptOffset, SinkTask, Writer
from keelman.connect.records import Column, Origin, SinkBatch, TopicPartition
from keelman.connect.tasks.kept_offsets import Assignment, SinkReader
from keelman.connectors.kafka_sink import KafkaSink
from keelman.kafka.batches.produce_failure import ProduceFailure
from keelman.kafka.clients import low_level_client
from keelman.kafka.groups.protocol import GroupClient
from keelman.kafka.groups.static_members import remove_static_members
from keelman.runtime.side_loop import KAFKA_LOOP
from support.copying.harness import ENDS, Run, ticket
from support.copying.orders import DRAIN
from support.kafka.topics import create_topic, messages
from support.servers.http_server import HttpRequest, http_server
from support.waiting import until

pytestmark = pytest.mark.component
LAPSE_SECONDS = 6  # the least that brokers allow for a session


def opened(bootstrap: str, name: str, task: int) -> Writer:
    config = kafka_sink(name, topic=f"to-{name}")
    worker = {"bootstrap.servers": bootstrap, "group.id": "test-workers"}
    sink_task = SinkTask(f"{name}-out", task, worker, lambda: None, lambda _index, error: pytest.fail(str(error)))
    return KafkaSink.open_task_writer(config, sink_task, exactly_once=True)


def batch(topic: str, numbers: range) -> SinkBatch:
    values: list[bytes | None] = [b"%d" % number for number in numbers]
    count = len(numbers)
    origin = Origin([topic] * count, [0] * count, list(numbers), [None] * count, [()] * count)
    return SinkBatch(Column(values), Column([None] * count), origin)


def test_who_was_overtaken_commits_nothing_though_it_has_written(bootstrap: str, name: str) -> None:
    """It waited for longer than its group's timeout, its transaction open; it has not noticed yet."""
    create_topic(bootstrap, name)
    reader, partition = SinkReader("test-workers", f"connect-{name}-out", "cluster"), TopicPartition(name, 0)
    first, second = opened(bootstrap, name, 0), opened(bootstrap, name, 1)
    try:
        assert first.take_over(Assignment(reader, {partition: None})) == {}
        first.write(batch(name, range(10)))
        first.commit({partition: KeptOffset(10, (None,))}, clean=False)
        first.write(batch(name, range(10, 20)))
        stored = second.take_over(Assignment(reader, {partition: None}))
        assert stored == {partition: KeptOffset(10, (None,))}
        second.write(batch(name, range(10, 15)))
        with pytest.raises(ProduceFailure) as failed:
            first.commit({partition: KeptOffset(20, (None,))}, clean=False)
        assert failed.value.name in ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "INVALID_TXN_STATE")
        second.commit({partition: KeptOffset(15, (None,))}, clean=False)
    finally:
        first.close()
        second.close()
    assert [int(m.value()) for m in messages(bootstrap, f"to-{name}")] == list(range(15))


def test_who_hands_over_in_good_order_goes_on_with_what_it_gets_next(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 2)
    reader = SinkReader("test-workers", f"connect-{name}-out", "cluster")
    p0, p1 = TopicPartition(name, 0), TopicPartition(name, 1)
    first, second = opened(bootstrap, name, 0), opened(bootstrap, name, 1)
    try:
        first.take_over(Assignment(reader, {p0: None, p1: None}))
        first.hand_over()
        assert second.take_over(Assignment(reader, {p1: None})) == {}
        assert first.take_over(Assignment(reader, {p0: None})) == {}
        first.write(batch(name, range(5)))
        first.commit({p0: KeptOffset(5, (None,))}, clean=True)
    finally:
        first.close()
        second.close()
    assert len(messages(bootstrap, f"to-{name}")) == 5


async def test_tasks_that_were_all_killed_settle_and_copy_all_once(
    bootstrap: str, name: str, runs: Callable[..., Run]
) -> None:
    """The first to come back has all partitions for a moment, and shuts the other out; which is then restarted."""
    produce(bootstrap, name, range(2_000), 4)
    config = kafka_sink(name, **{"keelman.commit.interval.ms": "50"})
    tasks = {task: runs(ticket(bootstrap, config, task=task)) for task in (0, 1)}
    until(lambda: len(messages(bootstrap, f"to-{name}")) == 2_000, "all is copied")
    for run in tasks.values():
        run.loop.control.cut("TEST")
        run.until_state("ENDED")
    await remove_static_members(
        {"bootstrap.servers": bootstrap}, f"connect-{name}-out", [f"test-workers-{name}-out-{task}" for task in (0, 1)]
    )
    produce(bootstrap, name, range(2_000, 4_000), 4)
    tasks = {task: runs(ticket(bootstrap, config, task=task)) for task in (0, 1)}
    shut_out = 0

    def begun_again(task: int) -> None:
        nonlocal shut_out
        last = tasks[task].seen[-1]
        assert (last.reason, last.retriable) == ("FENCED", True)
        shut_out += 1
        tasks[task] = runs(ticket(bootstrap, config, task=task))

    def settled() -> bool:
        for task, run in list(tasks.items()):
            while not run.updates.empty():
                run.seen.append(run.updates.get())
            if run.seen and run.seen[-1].state == COPY_RUN_STATE_FAILED:
                begun_again(task)
        return all(run.seen and run.seen[-1].state == COPY_RUN_STATE_RUNNING for run in tasks.values())

    until(lambda: settled() and len(messages(bootstrap, f"to-{name}")) >= 4_000, "both copy what is theirs")
    produce(bootstrap, name, range(4_000, 4_040), 4)
    until(lambda: settled() and len(messages(bootstrap, f"to-{name}")) >= 4_040, "and go on")
    while tasks:  # a late round of the group may shut one out even now
        for task, run in list(tasks.items()):
            run.loop.control.apply(DRAIN)
            if run.until(lambda u: u.state in ENDS).state == COPY_RUN_STATE_FAILED:
                begun_again(task)
            else:
                del tasks[task]
    assert shut_out <= 2
    assert numbers_by_partition(messages(bootstrap, f"to-{name}")) == {p: list(range(p, 4_040, 4)) for p in range(4)}


async def members_of(bootstrap: str, group: str) -> int:
    async with low_level_client({"bootstrap.servers": bootstrap}, client_id="observer", timeout_ms=30_000) as client:
        return len((await GroupClient(client, group, session_ms=0, rebalance_ms=0).describe()).members)


def test_a_task_that_waits_for_its_registry_keeps_its_place(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """It waits for longer than `max.poll.interval.ms` and a session together."""
    create_topic(bootstrap, name)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        producer.produce(name, b"\0" + struct.pack(">i", 1) + bytes([2 * len(str(number))]) + str(number).encode())
    assert producer.flush(300) == 0
    requests: list[float] = []
    is_back = False

    def serve(request: HttpRequest) -> None:
        requests.append(time.monotonic())
        if not is_back:
            request.answer(503, b"")
        else:
            request.answer(200, json.dumps({"schema": '"string"', "subject": "s", "version": 1, "id": 1}).encode())

    with http_server(serve) as port:
        config = {
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": f"http://127.0.0.1:{port}",
            "errors.retry.timeout": "600000",
            "errors.retry.delay.max.ms": "500",
            "consumer.override.session.timeout.ms": str(LAPSE_SECONDS * 1000),
            "consumer.override.max.poll.interval.ms": str(LAPSE_SECONDS * 1000),
        }
        run = runs(ticket(bootstrap, file_sink(name, tmp_path / "taken", **config)))
        until(lambda: requests and time.monotonic() - requests[0] > 2.5 * LAPSE_SECONDS, "it waits for long")
        assert KAFKA_LOOP.call(members_of(bootstrap, f"connect-{name}-out")) == 1
        is_back = True
        run.until_records(3)
        run.until(all_read)
        run.drain()
    assert (tmp_path / "taken").read_text() == "0\n1\n2\n"
