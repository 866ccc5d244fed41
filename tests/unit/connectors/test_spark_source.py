"""SparkSource: the remaining parts, the end of reading, and the rows of one part."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from keelman.connect.config.info import ConfigError, problems
from keelman.connect.errors import ConnectError, RetriableConnectError
from keelman.connect.offsets import CommittedOffsets
from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch
from keelman.connect.tasks.data_set import PART, PARTS, PASSING, PROBLEM, SPLIT
from keelman.connectors.spark.source import BEGUN, MAX_PARTS, SparkSource
from keelman.connectors.validation.configuration import validate
from keelman.engine.slot import part_rows

CONFIG = {"connector.class": "SparkSource", "spark.format": "parquet", "spark.path": "/in", "topic": "t"}
TOLD = {**CONFIG, PARTS: "3", SPLIT: "now"}
NORMAL = {"format": "parquet", "path": "/in"}


def offsets(progress: Mapping[int, Mapping[str, Any]], done: Mapping[str, Any] | None = None) -> CommittedOffsets:
    present_offsets = CommittedOffsets("c")
    for part, at in progress.items():
        present_offsets.note({**NORMAL, "part": part}, at)
    if done is not None:
        present_offsets.note(NORMAL, done)
    return present_offsets


def split(present_offsets: CommittedOffsets, config: Mapping[str, str] = TOLD) -> list[dict[str, str]]:
    return SparkSource.split(config, present_offsets.offset, slots=2, least=0)


def test_every_part_that_is_not_done_is_read() -> None:
    present_offsets = offsets({0: {"rows": 5, "split": "now"}, 1: {"rows": 9, "split": "now", "done": True}})
    assert split(present_offsets) == [{BEGUN: "true"}, {PART: "0", SPLIT: "now"}, {PART: "2", SPLIT: "now"}]


def test_without_an_order_a_part_is_one_transaction() -> None:
    assert split(offsets({}), {**TOLD, "spark.ordered": "false"})[1] == {
        PART: "0",
        SPLIT: "now",
        "transaction.boundary": "connector",
        "producer.override.transaction.timeout.ms": "900000",
    }


def test_nothing_is_read_again_unless_it_is_time() -> None:
    done = {"rows": 9, "parts": 3, "split": "before", "time": 1}
    assert split(offsets({}, done)) == []
    assert len(split(offsets({}, done), {**TOLD, "spark.every.ms": "1"})) == 4
    reader = SparkSource.open_reader(TOLD, offsets({}, done).offset)
    assert reader.read() is None
    assert not reader.glance()
    again = SparkSource.open_reader({**TOLD, "spark.every.ms": "1", BEGUN: "true"}, offsets({}, done).offset)
    assert not again.glance()


def test_a_reader_that_has_read_all_ends_when_it_is_time_to_read_again() -> None:
    at = {part: {"rows": 1, "split": "now", "done": True} for part in range(3)}
    reader = SparkSource.open_reader({**TOLD, "spark.every.ms": "1"}, offsets(at).offset)
    assert reader.read() is not None
    while not reader.glance():
        pass
    with pytest.raises(RetriableConnectError, match="again"):
        reader.read()


def test_the_last_transaction_replaces_the_parts_by_the_whole() -> None:
    at = {part: {"rows": part + 1, "split": "now", "done": True} for part in range(3)}
    present_offsets = offsets(at)
    assert split(present_offsets) == []
    batch = SparkSource.open_reader(TOLD, present_offsets.offset).read()
    assert batch is not None
    (normal, whole), *parts = batch.offsets
    assert normal == NORMAL
    assert whole is not None
    assert (whole["rows"], whole["parts"], whole["split"]) == (6, 3, "now")
    assert parts == [({**NORMAL, "part": part}, None) for part in range(3)]


@pytest.mark.parametrize(
    ("config", "progress", "reason"),
    [
        ({**CONFIG, PROBLEM: "no such path"}, {}, "no such path"),
        (TOLD, {1: {"rows": 1, "split": "before"}}, "has changed after 1 of its parts"),
        (TOLD, {MAX_PARTS - 1: {"rows": 1, "split": "before"}}, "has changed"),
        ({**TOLD, PARTS: str(MAX_PARTS + 1)}, {}, "maxPartitionBytes"),
    ],
)
def test_what_cannot_be_read_to_its_end_is_said(config: dict[str, str], progress: Any, reason: str) -> None:
    with pytest.raises(ConnectError, match=reason):
        split(offsets(progress), config)


def test_what_may_pass_is_tried_again() -> None:
    with pytest.raises(RetriableConnectError, match="connection refused"):
        split(offsets({}), {**CONFIG, PROBLEM: "connection refused", PASSING: "true"})


def faults(more: dict[str, str], worker: dict[str, str]) -> list[ConfigError]:
    config = {**CONFIG, "name": "c", **more}
    return problems(validate(config, worker), config)


@pytest.mark.parametrize(
    ("key", "legal", "wrong", "reason"),
    [
        ("spark.packages", "g.h:a_2.13:1.0, g:b:2", "g.h:a", "'g.h:a' is not group:artifact:version"),
        ("spark.packages", "", "g:a:1 --x", "'g:a:1 --x' is not group:artifact:version"),
        ("spark.python.source", "a.b:Rows", "a.b.Rows", "Value must be module:Class"),
    ],
)
def test_what_is_wrong_with_jars_and_classes_is_told_before_anything_starts(
    key: str, legal: str, wrong: str, reason: str
) -> None:
    worker = {f"{role}.converter": "StringConverter" for role in ("key", "value")}
    assert faults({key: legal}, worker) == []
    (error,) = faults({key: wrong}, worker)
    assert error.message == f"Invalid value {wrong} for configuration {key}: {reason}"


def test_a_worker_without_exactly_once_is_refused() -> None:
    string = "org.apache.kafka.connect.storage.StringConverter"
    worker = {"key.converter": string, "value.converter": string}
    assert faults({}, worker) == []
    (error,) = faults({}, {**worker, "exactly.once.source.support": "disabled"})
    assert (error.key, "exactly once only" in error.message) == ("connector.class", True)


def part(batches: Iterable[Any], read: int = 0, **more: str) -> Reader:
    part_rows.offer_rows(batches)
    present_offsets = offsets({1: {"rows": read, "split": "now"}} if read else {})
    return SparkSource.open_reader({**TOLD, PART: "1", **more}, present_offsets.offset)


def rows(**columns: list[Any]) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def read_all(reader: Reader) -> list[SourceBatch]:
    results = []
    while not reader.finished():
        batch = reader.read()
        if batch is not None:
            results.append(batch)
            reader.committed()
    return results


def test_rows_that_are_committed_are_passed_over() -> None:
    batches = [rows(value=[b"0", b"1"]), rows(value=[b"2"]), rows(value=[b"3", b"4"])]
    read = read_all(part(batches, read=4))
    assert [batch.values.values for batch in read] == [[b"4"], []]
    assert [batch.offsets[0][1] for batch in read] == [
        {"rows": 5, "split": "now"},
        {"rows": 5, "split": "now", "done": True},
    ]


def test_rows_of_several_topics_keep_their_order_and_exact_offsets() -> None:
    batch = rows(value=[b"0", b"1", b"2", b"3"], topic=["a", "a", None, "a"], key=[b"k", None, None, None])
    read = read_all(part([batch]))
    assert [(entry.topic, entry.values.values) for entry in read[:-1]] == [
        ("a", [b"0", b"1"]),
        ("t", [b"2"]),
        ("a", [b"3"]),
    ]
    assert [batch.offsets[0][1]["rows"] for batch in read] == [2, 3, 4, 4]  # type: ignore[index]


def test_only_the_end_of_a_part_without_order_commits() -> None:
    read = read_all(part([rows(value=[b"0"]), rows(value=[b"1"])], **{"spark.ordered": "false"}))
    assert [(batch.boundary, len(batch.offsets)) for batch in read] == [(None, 0), (None, 0), ("commit", 1)]


def test_a_part_that_has_become_shorter_is_not_taken_for_done() -> None:
    with pytest.raises(ConnectError, match="1 rows now, and 4 of it were copied"):
        read_all(part([rows(value=[b"0"])], read=4))


def test_an_error_of_sparks_is_no_end() -> None:
    def broken() -> Iterable[Any]:
        yield rows(value=[b"0"])
        raise OSError("torn")

    with pytest.raises(RetriableConnectError, match="torn"):
        read_all(part(broken()))


def test_rows_are_given_to_one_reader_only() -> None:
    read_all(part([]))
    with pytest.raises(RetriableConnectError, match="no rows"):
        SparkSource.open_reader({**TOLD, PART: "1"}, offsets({}).offset)
