"""Batches of Java, librdkafka and sarama, in every format and codec, compared with the records that Java reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keelman.kafka.batches.record_batch import decode
from keelman.kafka.fetching.fetched import whole_batches
from support.places import RECORDED_FOLDER

RECORDED = json.loads((RECORDED_FOLDER / "batches" / "batches.json").read_text())


def hexed(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def read(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """All data records of fetched bytes, in the notation of the record, and the position after them."""
    batches, behind = whole_batches(data, 0, (), read_committed=True, check_crcs=True)
    results = []
    for columns in (decode(*batch) for batch in batches):
        rows = (columns.offsets, columns.timestamps_ms, columns.keys, columns.values, columns.headers)
        for offset, time, key, value, headers in zip(*rows, strict=True):
            entry = {"offset": offset, "timestamp": time, "key": hexed(key), "value": hexed(value)}
            results.append({**entry, "headers": [[name, hexed(content)] for name, content in headers]})
    return results, behind


@pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: str(entry["name"]))
def test_they_are_read_as_java_reads_them(entry: dict[str, Any]) -> None:
    records, behind = read(bytes.fromhex(entry["bytes"]))
    assert records == [record for batch in entry["batches"] if not batch["control"] for record in batch["records"]]
    assert behind == entry["batches"][-1]["last_offset"] + 1


def test_every_writer_and_format_is_there() -> None:
    names = {entry["name"] for entry in RECORDED}
    assert {f"{writer}-{codec}" for writer in ("librdkafka", "sarama") for codec in ("gzip", "lz4", "zstd")} <= names
    assert {(batch["magic"], batch["codec"]) for entry in RECORDED for batch in entry["batches"]} == {
        *((magic, codec) for magic in (0, 1, 2) for codec in (0, 1, 2, 3)),
        (2, 4),
    }
    assert any(batch["control"] for entry in RECORDED for batch in entry["batches"])


def test_an_aborted_transaction_of_librdkafka_is_left_out() -> None:
    (entry,) = (entry for entry in RECORDED if entry["name"] == "librdkafka-transactions")
    data, first = bytes.fromhex(entry["bytes"]), entry["batches"][0]
    aborted = [(first["producer_id"], first["records"][0]["offset"])]
    batches, behind = whole_batches(data, 0, aborted, read_committed=True, check_crcs=True)
    assert [columns.offsets for columns in (decode(*batch) for batch in batches)] == [[6, 7, 8, 9, 10]]
    assert behind == 12
