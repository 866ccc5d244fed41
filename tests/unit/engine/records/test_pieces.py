"""A large batch with bad records is converted in pieces: all good records are there, in order, with their origin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Message

from keelman.connect.bad_records.tolerance import Policy
from keelman.connect.plugin import Writer
from keelman.connect.records import Column, SinkBatch, SourceBatch
from keelman.connect.schema import STRING
from keelman.engine.records.bad_records import BadRecords
from keelman.engine.records.pieces import PIECE
from keelman.engine.sink.batch import BatchBuilder
from keelman.engine.source.conversion import SourceConversion

TEXT = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {"key.converter": TEXT, "value.converter": TEXT}
RECORDS = 3 * PIECE + 7
BAD = {5, PIECE + 1, PIECE + 2, RECORDS - 1}
CONFIG = {
    "name": "c",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
    "transforms": "x",
    "transforms.x.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.x.spec": "int32",
}
GOOD = [n for n in range(RECORDS) if n not in BAD]


class Taking(Writer):
    """A writer that wants keys and origins."""

    wants_keys = wants_origin = True

    def write(self, batch: SinkBatch) -> None:
        pass

    def commit(self, offsets: Mapping[Any, Any], *, clean: bool) -> None:
        pass


def value(number: int) -> bytes:
    return b"bad" if number in BAD else b"%d" % number


def test_of_a_sink() -> None:
    bad = BadRecords("c", 0, Policy.of(CONFIG, sink=True))
    columns = BatchBuilder(CONFIG, WORKER, bad)
    messages = [
        Message(topic="t", partition=0, offset=n, key=b"k%d" % n, value=value(n), headers=[("n", b"%d" % n)])
        for n in range(RECORDS)
    ]
    batch, _ = columns.batch(messages, Taking())
    assert batch.origin is not None
    assert batch.keys is not None
    assert (batch.values.values, list(batch.origin.offsets)) == (GOOD, GOOD)
    assert batch.keys.texts().values == [f"k{n}" for n in GOOD]
    assert [dict(headers or ()) for headers in batch.origin.headers] == [{"n": b"%d" % n} for n in GOOD]
    assert [columns.place(index) for index in range(len(GOOD))] == GOOD
    assert [letter.whence.offset for letter in bad.take_letters()] == sorted(BAD)


def test_of_a_source() -> None:
    bad = BadRecords("c", 0, Policy.of(CONFIG, sink=False))
    notices: list[tuple[int, int, int]] = []
    batch = SourceBatch(
        "t",
        Column([value(n) for n in range(RECORDS)], STRING, utf8=True),
        Column([f"k{n}" for n in range(RECORDS)], STRING),
        timestamps_ms=list(range(RECORDS)),
        position=lambda n: ({}, {"n": n}),
        delivered={n: lambda p, o, n=n: notices.append((n, p, o)) for n in (4, 6, 2 * PIECE)},  # type: ignore[misc]
    )
    payloads = list(SourceConversion(CONFIG, WORKER, bad).payloads(batch))
    assert [int(value or b"") for _, values, _ in payloads for value in values] == GOOD
    assert [key for _, _, keys in payloads for key in keys or ()] == [b"k%d" % n for n in GOOD]
    assert [time for piece, _, _ in payloads for time in piece.timestamps_ms or ()] == GOOD
    for piece, values, _ in payloads:
        for at, tell in (piece.delivered or {}).items():
            tell(0, int(values[at] or b""))
    assert notices == [(4, 0, 4), (6, 0, 6), (2 * PIECE, 0, 2 * PIECE)]
    assert [letter.whence.source_offset for letter in bad.take_letters()] == [{"n": n} for n in sorted(BAD)]
