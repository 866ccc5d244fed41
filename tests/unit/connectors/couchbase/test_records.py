"""Records, offsets and task sets, byte for byte as the official connector was recorded to write them."""

import json
from typing import Any

import pytest

from keelman.connect.offsets import value_bytes
from keelman.connect.schema import Struct
from keelman.connectors.couchbase import documents, partitions
from keelman.connectors.couchbase.first import CouchbaseSource2016
from keelman.connectors.couchbase.official import CouchbaseSource
from keelman.connectors.couchbase.reader import Pace
from keelman.connectors.couchbase.values import seconds, size_bytes
from keelman.couchbase.frames import Opcode
from keelman.couchbase.manifest import DEFAULT_COLLECTION
from keelman.couchbase.vbucket import Event, Place, Position

PLACE = Place(0xABC0_0000_0000_0000, 0, 6, 2)
VBUUID = -6_070_852_297_695_428_608


def changed(kind: int = Opcode.MUTATION, value: bytes = b'{"vb": 0}', **more: Any) -> Event:
    given = {"kind": kind, "vbucket": 0, "seqno": 3, "place": PLACE, "collection": DEFAULT_COLLECTION, "key": b"doc-0",
             "value": value, "datatype": 1, "cas": 1657324662872342531, "revision": 1, "flags": 33554432, "expiry": 0,
             "lock_time": 0, "size": 0}  # fmt: skip
    return Event(**{**given, **more})


def test_json_with_metadata() -> None:
    made = documents.with_metadata(changed(), "travel", False)
    assert made is not None
    assert made.value == (
        b'{"bucket":"travel","partition":0,"cas":1657324662872342531,"revSeqno":1,"lockTime":0,"bySeqno":3,'
        b'"vBucketUuid":%d,"flags":33554432,"expiration":0,"event":"mutation","key":"doc-0","content":{"vb": 0}}'
        % VBUUID
    )
    made = documents.with_metadata(changed(Opcode.DELETION, b""), "travel", False)
    assert made is not None
    assert list(json.loads(made.value)) == [
        "bucket", "partition", "cas", "revSeqno", "bySeqno", "vBucketUuid", "event", "key",
    ]  # fmt: skip


def test_raw_json() -> None:
    assert documents.raw_json(changed(), "b", False) == (None, b'{"vb": 0}')
    assert documents.raw_json(changed(value=b"no JSON"), "b", False) is None
    assert documents.raw_json(changed(value=b"no JSON"), "b", True) == (None, None)
    assert documents.raw_json(changed(Opcode.DELETION), "b", False) == (None, None)


def test_a_struct_of_everything() -> None:
    made = documents.message(changed(value=b"\xff", cas=2**64 - 1, flags=2**31), "travel", False)
    assert made is not None
    assert isinstance(made.value, Struct)
    assert dict(made.value.values) == {
        "event": "mutation", "partition": 0, "key": "doc-0", "cas": -1, "bySeqno": 3, "revSeqno": 1, "expiration": 0,
        "flags": -(2**31), "lockTime": 0, "content": b"\xff", "bucket": "travel", "vBucketUuid": VBUUID,
    }  # fmt: skip
    gone = documents.message(changed(Opcode.EXPIRATION), "travel", False)
    assert gone is not None
    assert (gone.value.values["event"], gone.value.values["content"], gone.value.values["flags"]) == (
        "expiration", None, None,
    )  # fmt: skip


def test_offsets_as_recorded_and_back() -> None:
    written = value_bytes(partitions.offset(3, PLACE))
    assert written is not None
    assert json.loads(written) == {
        "bySeqno": 3, "vbuuid": VBUUID, "snapshotStartSeqno": 0, "snapshotEndSeqno": 6, "collectionsManifestUid": 2,
    }  # fmt: skip
    assert partitions.position(json.loads(written)) == Position(3, PLACE)
    assert partitions.position({"bySeqno": 5}) == Position(5, None)
    assert partitions.position({"bySeqno": 5, "vbuuid": -1}) == Position(5, Place(2**64 - 1, 5, 5))


def test_vbuckets_in_runs() -> None:
    assert [partitions.written(run) for run in partitions.dealt(1024, 3)] == ["0..341", "342..682", "683..1023"]
    assert [partitions.written(run) for run in partitions.dealt(3, 2)] == ["0;1", "2"]
    assert len(partitions.dealt(2, 5)) == 2
    for text in ("0..341", "3;4", "7", "0;1;5..9"):
        assert partitions.written(partitions.read(text)) == text


def test_a_pace_is_held_each_second() -> None:
    pace = Pace(10)
    assert pace.left(5.1) == 10
    pace.taken(10)
    assert pace.left(5.9) == 0
    assert pace.left(6.0) == 10
    assert Pace(None).left(1.0) is None


@pytest.mark.parametrize(("text", "found"), [("100ms", 0.1), ("0", 0), (" 2M ", 120), ("1d", 86400)])
def test_durations(text: str, found: float) -> None:
    assert seconds(text) == found


@pytest.mark.parametrize(("text", "found"), [("16m", 16 << 20), ("0", 0), ("3B", 3)])
def test_sizes(text: str, found: int) -> None:
    assert size_bytes(text) == found


GOOD = {
    "couchbase.seed.nodes": "one:11210,[::1]", "couchbase.username": "u", "couchbase.password": "p",
    "couchbase.bucket": "travel",
    "couchbase.source.handler": "com.couchbase.connect.kafka.handler.source.RawJsonSourceHandler",
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"couchbase.bucket": ""}, "Missing required config property: couchbase.bucket"),
        (
            {"couchbase.scope[a.b]": "x"},
            "Invalid config property 'couchbase.scope[a.b]' ; property 'couchbase.scope' does not support contextual "
            "overrides (square brackets)",
        ),
        ({"couchbase.scope": "a", "couchbase.collections": "a.b"}, "exclude each other"),
    ],
)
def test_configurations_of_the_official_connector(more: dict[str, str], said: str) -> None:
    assert CouchbaseSource.validate(GOOD) == []
    (error,) = CouchbaseSource.validate({**GOOD, **more})
    assert said in str(error)


def test_handlers_that_are_not_served_are_named() -> None:
    key = "couchbase.source.handler"
    handler = "com.couchbase.connect.kafka.handler.source.SchemaRegistrySourceHandler"
    with pytest.raises(Exception, match=r"SchemaRegistrySourceHandler.*RawJsonSourceHandler"):
        CouchbaseSource.config_def().parse({**GOOD, key: handler})
    with pytest.raises(Exception, match="not served"):
        CouchbaseSource.config_def().parse({**GOOD, "couchbase.jsonpath.filter": "$.a"})


AS_PRINTED = {
    "topic": "couchbase-kafka-connector", "schema.name": "couchbaseschema", "couchbase.nodes": "localhost",
    "couchbase.bucket": "PMCONCURRENCY", "dcp.maximum.drainrate": "1000",
    "couchbase.dcpConnectionBufferSize": "0", "tasks.max": "1",
}  # fmt: skip


def test_both_configurations_of_2016_as_they_were_printed() -> None:
    other = {("couchbase.buckets" if key == "couchbase.bucket" else key): text for key, text in AS_PRINTED.items()}
    assert CouchbaseSource2016.validate(AS_PRINTED) == ()
    assert CouchbaseSource2016.validate(other) == ()


@pytest.mark.parametrize(
    "key", ["topic", "schema.name", "couchbase.nodes", "couchbase.bucket", "dcp.maximum.drainrate"]
)
def test_what_2016_must_have(key: str) -> None:
    (error,) = CouchbaseSource2016.validate({name: text for name, text in AS_PRINTED.items() if name != key})
    assert str(error) == f"Configuration must include '{key}' setting"


@pytest.mark.parametrize(("rate", "said"), [("ten", "setting should be an integer"), ("0", "must be at least 1")])
def test_a_rate_that_is_none(rate: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        CouchbaseSource2016.config_def().parse({**AS_PRINTED, "dcp.maximum.drainrate": rate})
