"""The offsets that a task's reader commits, and when it may be parked, before any document has changed."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from keelman.connect.plugin import Reader
from keelman.connect.records import SourceBatch
from keelman.connect.tasks.source_task import SourceTask
from keelman.connect.watches import VbucketWatch
from keelman.connectors.couchbase import official, partitions
from keelman.connectors.couchbase.keys import official_keys
from keelman.connectors.couchbase.official import INITIAL_KEY, CouchbaseSource, OfficialRecords
from keelman.connectors.couchbase.reader import CouchbaseReader
from keelman.couchbase.changes import StreamOptions, VbucketChanges
from keelman.couchbase.frames import Opcode
from keelman.couchbase.manifest import DEFAULT_COLLECTION
from keelman.couchbase.seeds import BucketAccess
from keelman.couchbase.vbucket import Event, HistoryPlace, Position

CONFIG = {
    "couchbase.seed.nodes": "one", "couchbase.username": "u", "couchbase.password": "p", "couchbase.bucket": "travel",
    "couchbase.source.handler": "com.couchbase.connect.kafka.handler.source.RawJsonSourceHandler",
    "couchbase.partitions": "0;1",
}  # fmt: skip
PLACE = HistoryPlace(7, 6, 6)


def changed(value: bytes, key: bytes = b"doc") -> Event:
    """A document that was stored."""
    return Event(Opcode.MUTATION, 0, 7, PLACE, DEFAULT_COLLECTION, key, value, 0, 0, 1, 0, 0, 0, 0)


class Quiet:
    """Changes of a bucket in which no document changes."""

    def resting(self) -> dict[int, tuple[int, int]]:
        return {0: (6, 7), 1: (6, 7)}

    async def close(self) -> None:
        """Has nothing to close."""


class QuietReader(CouchbaseReader):
    """Its vbuckets begin after change 6."""

    async def _open(
        self, access: BucketAccess, stream_options: StreamOptions, starts: Mapping[int, Position | None]
    ) -> dict[int, Position]:
        self._changes = cast("VbucketChanges", Quiet())
        return {number: Position(6, PLACE) for number in starts}


def opened(monkeypatch: pytest.MonkeyPatch, saved: Mapping[str, Any], **more: str) -> Reader:
    """The reader of a task of today's connector; `saved` has offsets by vbucket."""
    monkeypatch.setattr(official, "CouchbaseReader", QuietReader)
    config = {**CONFIG, **{f"couchbase.{key.replace('_', '.')}": text for key, text in more.items()}}
    task = cast("SourceTask", type("Task", (), {"connector": "c", "task": 0, "worker": {}, "beat": lambda *_: None})())
    return CouchbaseSource.open_task_reader(config, task, lambda entry: saved.get(entry["partition"]))


def first_batch(reader: Reader) -> SourceBatch:
    """Returns the reader's first batch."""
    batch = reader.read()
    assert batch is not None
    return batch


def test_where_a_vbucket_begins_is_committed_before_anything_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = opened(monkeypatch, {"0": {"bySeqno": 3, "vbuuid": 7}}, stream_from="SAVED_OFFSET_OR_NOW")
    assert reader.watch() is None, "it is not committed yet"
    batch = first_batch(reader)
    assert (batch.topic, len(batch.values.values), batch.short) == ("", 0, True)
    assert list(batch.offsets) == [(partitions.partition("travel", 1), partitions.offset(6, PLACE))]
    watch = reader.watch()
    assert isinstance(watch, VbucketWatch)
    assert watch.positions == {0: (6, 7), 1: (6, 7)}


def test_a_record_of_where_a_vbucket_begins_has_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = opened(monkeypatch, {}, stream_from="SAVED_OFFSET_OR_NOW", initial_offset_topic="begin")
    batch = first_batch(reader)
    assert batch.keys is not None
    assert (batch.topic, list(batch.keys.values)) == ("begin", [INITIAL_KEY] * 2)
    assert list(batch.offsets) == [
        (partitions.partition("travel", number), partitions.offset(6, PLACE)) for number in (0, 1)
    ]


@pytest.mark.parametrize("stream_from", ["NOW", "BEGINNING"])
def test_a_task_that_would_not_go_on_from_its_offsets_stays_in_its_slot(
    monkeypatch: pytest.MonkeyPatch, stream_from: str
) -> None:
    assert opened(monkeypatch, {}, stream_from=stream_from).watch() is None


def test_a_task_that_goes_on_from_its_offsets_or_reads_all_may_be_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(monkeypatch, {}).watch() is not None


def test_documents_that_are_no_json_are_warned_of_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[dict[str, Any]] = []
    log = type("Log", (), {"warning": lambda _, name, **value: warned.append({"name": name, **value})})
    monkeypatch.setattr(official, "_log", log())
    maker = OfficialRecords(CONFIG, official_keys().parse(CONFIG))
    assert not maker.rows([changed(b"no JSON"), changed(b"neither"), changed(b"[", key=b"_txn:1")])
    assert warned == [
        {"name": "couchbase_no_json", "bucket": "travel", "collection": "_default._default", "document": "doc",
         "passed_over": 1},
    ]  # fmt: skip
