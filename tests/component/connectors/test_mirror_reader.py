"""A mirror's reader by itself: every committed record of its partitions unchanged, in whole batches if possible."""

import time
from random import Random

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch
from keelman.connectors.mirror.source import ASSIGNED, MirrorSource
from keelman.engine.producing.producer_options import CODECS
from keelman.kafka.batches.record_batch import decode, read_header
from support.kafka.topics import create_topic, messages

pytestmark = pytest.mark.component

Row = tuple[int, bytes | None, bytes | None, int, list[tuple[str, bytes | None]]]
Offset = dict[str, int] | None


def open_reader(
    bootstrap: str, topic: str, partitions: int, starts: dict[int, int] | None = None, **more: str
) -> Reader:
    """`starts` has the offset of the last record copied by partition."""
    config = {
        "source.cluster.alias": "there",
        "source.cluster.bootstrap.servers": bootstrap,
        "emit.offset-syncs.enabled": "false",
        ASSIGNED: ",".join(f"{topic}-{number}" for number in range(partitions)),
        **more,
    }

    def offset(partition: dict[str, int]) -> Offset:  # type: ignore[type-arg]
        at = (starts or {}).get(partition["partition"])
        return None if at is None else {"offset": at}

    return MirrorSource.open_reader(config, offset)  # type: ignore[arg-type]


def rows(batch: SourceBatch) -> list[Row]:
    actual_rows: list[Row] = []
    for packed in batch.packed:
        columns = decode(read_header(packed.data), packed.data)
        assert len(columns.values) == packed.records
        fields = (columns.keys, columns.values, columns.timestamps_ms, columns.headers)
        actual_rows += [(packed.partition, *row) for row in zip(*fields, strict=True)]  # type: ignore[arg-type]
    for index, value in enumerate(batch.values.values):
        key = None if batch.keys is None else batch.keys.values[index]
        assert batch.partitions is not None and batch.timestamps_ms is not None  # noqa: PT018
        headers = [] if batch.headers is None else list(batch.headers[index])
        actual_rows.append((batch.partitions[index] or 0, key, value, batch.timestamps_ms[index] or 0, headers))
    return actual_rows


def read_out(reader: Reader, most: int | None = None) -> list[SourceBatch]:
    """All batches until the ends of its partitions; closes the reader."""
    source_batches: list[SourceBatch] = []
    try:
        deadline = time.monotonic() + 300
        while reader.watch() is None:
            assert time.monotonic() < deadline, reader.waits_for()
            reader.most_records = most
            batch = reader.read()
            if batch is not None:
                source_batches.append(batch)
        assert reader.left() == 0
        assert reader.caught_up()
    finally:
        reader.close()
    return source_batches


def by_partition(actual_rows: list[Row]) -> list[Row]:
    """The rows by partition, each in the order of arrival."""
    return sorted(actual_rows, key=lambda row: row[0])


def given(bootstrap: str, topic: str, starts: dict[int, int]) -> list[Row]:
    actual_messages = sorted(messages(bootstrap, topic), key=lambda m: (m.partition(), m.offset()))
    return [
        (m.partition(), m.key(), m.value(), m.timestamp()[1], m.headers() or [])
        for m in actual_messages
        if m.offset() > starts.get(m.partition(), -1)
    ]


def fill(bootstrap: str, topic: str, partitions: int) -> None:
    """Transactions of each codec, every third one aborted: records with and without keys, values and headers."""
    random = Random(topic)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        settings = {"transactional.id": f"{topic}-{codec}", "compression.type": codec, "batch.num.messages": 40}
        writer = Producer({"bootstrap.servers": bootstrap, **settings})
        writer.init_transactions(30)
        for turn in range(6):
            writer.begin_transaction()
            for number in range(180):
                headers = [("h", b"x" * number), ("h", None)] if number % 7 == 0 else None
                key = None if number % 2 else b"%d-%d" % (turn, number)
                value = None if number % 5 == 0 else random.randbytes(500)
                writer.produce(topic, value, key, number % partitions, headers=headers)
            if turn % 3 == 1:
                assert writer.flush(300) == 0
                writer.abort_transaction(30)
            else:
                writer.commit_transaction(30)


def test_batches_go_whole_unless_they_must_be_cut_or_are_of_another_codec(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 2)
    fill(bootstrap, name, 2)
    all_of_it = given(bootstrap, name, {})
    assert len(all_of_it) == 5 * 4 * 180
    whole = read_out(open_reader(bootstrap, name, 2))
    assert by_partition([row for batch in whole for row in rows(batch)]) == all_of_it
    assert all(batch.packed and not batch.values.values for batch in whole)
    # A limit that cuts most batches, another codec, and a start within a batch.
    starts = {1: 31}
    cut = read_out(open_reader(bootstrap, name, 2, starts), most=30)
    assert by_partition([row for batch in cut for row in rows(batch)]) == given(bootstrap, name, starts)
    assert max(len(rows(batch)) for batch in cut) <= 30
    reader = open_reader(bootstrap, name, 2, starts)
    reader.codec = CODECS["zstd"]
    mixed = read_out(reader)
    assert by_partition([row for batch in mixed for row in rows(batch)]) == given(bootstrap, name, starts)
    assert {bool(batch.packed) for batch in mixed} == {True, False}
    assert {read_header(packed.data).codec for batch in mixed for packed in batch.packed} == {4}
    # Only the last batch is the last of the log; the offsets are those of the last records, markers or not.
    assert whole[-1].short
    assert not any(batch.short for batch in cut[:-2])
    last = {number: offset for batch in whole for entry, offset in batch.offsets for number in [entry["partition"]]}
    ends = {m.partition(): m.offset() for m in messages(bootstrap, name)}
    assert {number: offset["offset"] for number, offset in last.items() if offset is not None} == ends


def test_the_brokers_own_times_are_kept_as_the_records(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name, 1, **{"message.timestamp.type": "LogAppendTime"})
    fill(bootstrap, name, 1)
    (records_read,) = [read_out(open_reader(bootstrap, name, 1))]
    assert not any(batch.packed for batch in records_read)
    assert [row for batch in records_read for row in rows(batch)] == given(bootstrap, name, {})


def test_an_offset_that_is_gone_fails_a_reader_that_must_not_skip(bootstrap: str, name: str) -> None:
    create_topic(bootstrap, name)
    fill(bootstrap, name, 1)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    gone = TopicPartition(name, 0, 500)
    admin.delete_records([gone])[gone].result(300)
    strict = open_reader(bootstrap, name, 1, {0: 5}, **{"source.consumer.auto.offset.reset": "none"})
    with pytest.raises(KafkaException, match="offset 6 of partition 0"):
        read_out(strict)
    at_end = open_reader(bootstrap, name, 1, **{"source.consumer.auto.offset.reset": "latest"})
    assert read_out(at_end) == []
