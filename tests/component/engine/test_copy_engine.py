"""The task loop against a real broker: nothing lost, nothing doubled, through crashes at every step."""

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from keelman.api.copy.v1 import ticket_pb2
from keelman.connect.offsets import key_bytes
from keelman.engine.sink.exactly_once.journal import Journal, journal_path
from support.copying.harness import OFFSET_PARTITIONS, Run, committed_offsets, dies_at, hosted, ticket
from support.kafka.topics import create_topic, messages
from support.partitioner import partition_for
from support.waiting import until

pytestmark = pytest.mark.component

JSON = "org.apache.kafka.connect.json.JsonConverter"


def source(name: str, path: Path, **more: str) -> dict[str, str]:
    return {"name": f"{name}-in", "connector.class": "FileStreamSource", "file": str(path), "topic": name, **more}


def sink(name: str, path: Path, **more: str) -> dict[str, str]:
    return {"name": f"{name}-out", "connector.class": "FileStreamSink", "file": str(path), "topics": name, **more}


def numbered(count: int, start: int = 0, width: int = 9) -> bytes:
    return b"".join(b"%0*d\n" % (width, number) for number in range(start, start + count))


def records(
    bootstrap: str, topic: str, isolation: str = "read_committed"
) -> list[tuple[int, bytes | None, bytes | None]]:
    """Partition, key and value of every record up to the present end."""
    return [(m.partition(), m.key(), m.value()) for m in messages(bootstrap, topic, isolation)]


SOURCE_DEATHS = [
    ("record in an open transaction", 3),
    ("offsets in an open transaction", 2),
    ("record in an open transaction", 4),
    ("transaction committed", 2),
    ("offsets in an open transaction", 1),
]
SINK_DEATHS = [
    ("data written", 3),
    ("data durable", 3),
    ("journal not renamed", 3),
    ("journal durable", 3),
    ("group told", 2),
    ("data written", 1),
]


def die_and_finish(
    bootstrap: str, config: dict[str, str], deaths: list[tuple[str, int]], done: Callable[[], bool], log: Path
) -> None:
    """One process after another dies at its point of the copying; the last one finishes and is drained."""
    for death in deaths:
        dies_at(bootstrap, config, log, death)
    with hosted(bootstrap, config, log) as process:
        until(done, f"{config['name']} is done")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_hosted_run_ends_with_its_test(name: str, tmp_path: Path) -> None:
    config = source(name, tmp_path / "given")
    with pytest.raises(AssertionError, match="as a test fails"), hosted("localhost:1", config, tmp_path / "log") as run:
        raise AssertionError("as a test fails")
    assert run.returncode == -signal.SIGKILL


def test_200000_lines_are_identical_after_crashes_at_every_step(bootstrap: str, name: str, tmp_path: Path) -> None:
    path, taken, log = tmp_path / "given", tmp_path / "taken", tmp_path / "log"
    path.write_bytes(numbered(200_000, width=60))
    create_topic(bootstrap, name)
    often = {"keelman.commit.interval.ms": "20"}
    whole = path.stat().st_size
    into, out = source(name, path, **often), sink(name, taken, **often)

    def source_done() -> bool:
        offsets = dict(committed_offsets(bootstrap, "test-offsets", into["name"]))
        return whole in [json.loads(offset)["position"] for offset in offsets.values()]

    try:
        die_and_finish(bootstrap, into, SOURCE_DEATHS, source_done, log)
        die_and_finish(bootstrap, out, SINK_DEATHS, lambda: taken.stat().st_size >= whole, log)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{log.read_text()[-4000:]}") from error
    values = [value for _, _, value in records(bootstrap, name)]
    assert values == path.read_bytes().splitlines()
    assert taken.read_bytes() == path.read_bytes()
    uncommitted = records(bootstrap, name, "read_uncommitted")
    assert len(uncommitted) > len(values), "no crash left an aborted record, so this test showed nothing"


def test_a_restarted_copy_goes_on_where_it_was(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    path, taken = tmp_path / "given", tmp_path / "taken"
    create_topic(bootstrap, name)
    for start in (0, 1000, 2000):
        with path.open("ab") as file:
            file.write(numbered(1000, start))
        for config in (source(name, path), sink(name, taken)):
            run = runs(ticket(bootstrap, config))
            update = run.until_records(1000)
            assert update.progress.records == 1000
            assert list(update.topics) == [name]
            ended = run.drain()
            assert ended.reason == "DRAINED"
            assert ended.progress.lag <= 1, "the sink may not have passed the end of the last transaction"
    assert taken.read_bytes() == path.read_bytes() == numbered(3000)
    entry = Journal(taken).load()
    assert entry is not None
    assert entry.clean
    assert entry.length == len(numbered(3000))
    (of_reader,) = entry.offsets.values()
    (stored,) = of_reader.values()
    assert stored.mirrored == (stored.offset,)


def test_a_tail_is_copied_as_it_grows_and_half_a_line_waits(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    value, taken = tmp_path / "given", tmp_path / "taken"
    reader = runs(ticket(bootstrap, source(name, value)))
    reader.until_state("RUNNING")
    with value.open("ab", buffering=0) as file:  # created only now: the task waits for a missing file
        file.write(b"one\r\ntwo\rthr")
        reader.until_records(2)
        runs(ticket(bootstrap, sink(name, taken)))
        until(lambda: taken.exists() and taken.read_bytes() == b"one\ntwo\n", "two lines")
        file.write(b"ee\n")
        until(lambda: taken.read_bytes() == b"one\ntwo\nthree\n", "three lines")


def test_the_offset_record_has_javas_key_and_partition(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"a\nb\n")
    runs(ticket(bootstrap, source(name, path))).copied(2)
    key = key_bytes(f"{name}-in", {"filename": str(path)})
    (record,) = [r for r in records(bootstrap, "test-offsets") if r[1] == key]
    assert (*record[:2], json.loads(record[2])["position"]) == (partition_for(key, OFFSET_PARTITIONS), key, 4)


def test_key_bytes_of_the_topic_are_used_again_and_offsets_written_again_after_a_fence(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    """An older writer spelt the key with a space; an aborted transaction then left a newer, false offset."""
    path = tmp_path / "given"
    path.write_bytes(b"a\nb\n")
    key = b'["%s-in", {"filename": "%s"}]' % (name.encode(), str(path).encode())
    settings = {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"}
    older = Producer({**settings, "transactional.id": f"test-workers-{name}-in-0"})
    older.init_transactions(60)
    for value, end in ((b'{"position":2}', older.commit_transaction), (b'{"position":4}', older.abort_transaction)):
        older.begin_transaction()
        older.produce("test-offsets", value, key)
        assert older.flush(300) == 0
        end(60)
    runs(ticket(bootstrap, source(name, path))).copied(1)
    assert [value for _, _, value in records(bootstrap, name)] == [b"b"]
    values = [value for _, k, value in records(bootstrap, "test-offsets", "read_uncommitted") if k == key]
    assert values[:2] == [b'{"position":2}', b'{"position":4}']
    assert [json.loads(value)["position"] for value in values[2:]] == [4]  # with data at once, in one transaction


def test_a_fenced_run_fails_and_may_be_granted_again(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    path = tmp_path / "given"
    path.write_bytes(b"a\n")
    older = runs(ticket(bootstrap, source(name, path)))
    older.until_records(1)
    newer = runs(ticket(bootstrap, source(name, path)))
    newer.until_state("RUNNING")
    with path.open("ab") as file:
        file.write(b"b\n")
    failed = older.until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("FENCED", True)
    assert failed.trace.startswith("org.apache.kafka.common.KafkaException: ")
    newer.until_records(1)
    newer.drain()
    assert [value for _, _, value in records(bootstrap, name)] == [b"a", b"b"]


def test_a_withdrawn_ticket_copies_nothing(bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]) -> None:
    path, taken = tmp_path / "given", tmp_path / "taken"
    path.write_bytes(b"a\n")
    for config in (source(name, path), sink(name, taken)):
        run = runs(ticket(bootstrap, config), confirm=False)
        run.until_state("FENCED")
        run.loop.control.cut("WITHDRAWN")
        assert run.until_state("ENDED").reason == "WITHDRAWN"
        assert run.loop.join(300)
    assert not taken.exists()
    assert not committed_offsets(bootstrap, "test-offsets", f"{name}-in")


def test_a_cut_aborts_at_once_so_that_readers_need_not_wait(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    path = tmp_path / "given"
    path.write_bytes(numbered(300_000, width=100))
    run = runs(ticket(bootstrap, source(name, path, **{"keelman.commit.interval.ms": "60000"})))
    until(lambda: run.loop._reporter.topics, "the first batch is on its way")
    run.loop.control.cut("LEASE_LAPSED")
    assert run.until_state("ENDED").reason == "LEASE_LAPSED"
    next_one = runs(ticket(bootstrap, source(name, path)))
    next_one.until(lambda u: u.progress.records > 0 and u.progress.HasField("lag") and u.progress.lag == 0)
    assert len(records(bootstrap, name)) == 300_000


def test_a_group_offset_that_an_operator_moved_wins(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    taken = tmp_path / "taken"
    produce(bootstrap, name, *(b"%d" % n for n in range(10)))
    runs(ticket(bootstrap, sink(name, taken))).copied(10)
    operator = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"connect-{name}-out",
            "group.instance.id": f"test-workers-{name}-out-0",
        }
    )
    operator.subscribe([name])
    until(lambda: operator.poll(0.1) is None and operator.assignment(), "the operator's consumer has its partition")
    operator.commit(offsets=[TopicPartition(name, 0, 7)], asynchronous=False)
    operator.close()
    runs(ticket(bootstrap, sink(name, taken))).copied(3)
    assert taken.read_bytes().split() == [b"%d" % n for n in (*range(10), 7, 8, 9)]


def test_at_least_once_source_and_json_to_java_text(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    path, taken = tmp_path / "given", tmp_path / "taken"
    path.write_bytes(b'plain\nz\xc3\xbcrich "quoted"\nbad \xff byte\n')
    plain = {"delivery": ticket_pb2.DELIVERY_GUARANTEE_AT_LEAST_ONCE}
    convert = {"value.converter": JSON, "value.converter.schemas.enable": "true"}
    runs(ticket(bootstrap, source(name, path, **convert), transactional_id="", **plain)).copied(3)
    first = records(bootstrap, name)[0][2]
    assert first == b'{"schema":{"type":"string","optional":false},"payload":"plain"}'
    assert committed_offsets(bootstrap, "test-offsets", f"{name}-in")
    produce(bootstrap, name, b'{"schema":null,"payload":{"b":[1.5,null],"some_key":true}}', None)
    runs(ticket(bootstrap, sink(name, taken, **convert), **plain)).copied(5)
    assert not journal_path(taken).exists()
    text = 'plain\nzürich "quoted"\nbad \N{REPLACEMENT CHARACTER} byte\n{b=[1.5, null], some_key=true}\nnull\n'
    assert taken.read_text(encoding="utf-8") == text


def test_a_value_that_no_converter_takes_fails_for_good(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    produce(bootstrap, name, b"no json")
    run = runs(ticket(bootstrap, sink(name, tmp_path / "taken", **{"value.converter": JSON})))
    failed = run.until_state("FAILED")
    assert (failed.reason, failed.retriable) == ("TASK_FAILED", False)
    first, cause = failed.trace.splitlines()[:2]
    assert first == "org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler"
    assert cause.startswith(
        "Caused by: org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect"
    )
    assert f"topic {name}, partition 0, offset 0; value converter JsonConverter" in cause
    unknown = runs(ticket(bootstrap, {**source(name, tmp_path / "x"), "connector.class": "NoSuch"}))
    assert "which name matches NoSuch" in unknown.until_state("FAILED").message


def test_many_partitions_and_a_pattern_of_topics(
    bootstrap: str, name: str, tmp_path: Path, runs: Callable[..., Run]
) -> None:
    taken = tmp_path / "taken"
    create_topic(bootstrap, f"{name}-a", 3)
    produce(bootstrap, f"{name}-b", b"b0", b"b1")
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(3000):
        producer.produce(f"{name}-a", b"%d" % number, partition=number % 3)
    assert producer.flush(300) == 0
    config = sink(name, taken)
    del config["topics"]
    config["topics.regex"] = rf"{name}-\w"
    run = runs(ticket(bootstrap, config))
    run.until(lambda u: u.progress.records == 3002 and u.progress.HasField("lag") and u.progress.lag == 0)
    run.drain()
    lines = taken.read_bytes().split()
    assert sorted(lines) == sorted([b"b0", b"b1", *(b"%d" % n for n in range(3000))])
    for rest in range(3):
        mine = [int(line) for line in lines if line.isdigit() and int(line) % 3 == rest]
        assert mine == list(range(rest, 3000, 3))


def produce(bootstrap: str, topic: str, *values: bytes | None) -> None:
    """Writes values plainly; creates the topic if it does not exist."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    if topic not in producer.list_topics(timeout=300).topics:
        create_topic(bootstrap, topic)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(300) == 0
