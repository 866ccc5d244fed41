"""Records, offsets and task sets, byte for byte as the official connector was recorded to write them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from keelman.api.copy.v1 import watch_pb2 as wire
from keelman.connect.errors import ConnectError
from keelman.connect.offsets import key_bytes, value_bytes
from keelman.connect.watches import VbucketWatch
from keelman.connectors.couchbase import documents, partitions
from keelman.connectors.couchbase.documents import SKIPPED
from keelman.connectors.couchbase.first import CouchbaseSource2016
from keelman.connectors.couchbase.keys import access_by, access_of, official_keys, reached_by
from keelman.connectors.couchbase.official import CouchbaseSource, OfficialRecords
from keelman.connectors.couchbase.reader import ChangePace
from keelman.connectors.couchbase.values import seconds, size_bytes
from keelman.connectors.registry import PluginRegistry
from keelman.couchbase.frames import Opcode
from keelman.couchbase.manifest import DEFAULT_COLLECTION, Collection
from keelman.couchbase.vbucket import Event, HistoryPlace, Position
from keelman.engine.watches import from_wire, to_wire

PLACE = HistoryPlace(0xABC0_0000_0000_0000, 0, 6, 2)
VBUUID = -6_070_852_297_695_428_608


def changed(kind: int = Opcode.MUTATION, value: bytes = b'{"vb": 0}', **more: Any) -> Event:
    fields = {"kind": kind, "vbucket": 0, "seqno": 3, "place": PLACE, "collection": DEFAULT_COLLECTION, "key": b"doc-0",
             "value": value, "datatype": 1, "cas": 1657324662872342531, "revision": 1, "flags": 33554432, "expiry": 0,
             "lock_time": 0, "size": 0}  # fmt: skip
    return Event(**{**fields, **more})


def test_json_with_metadata() -> None:
    document = documents.with_metadata(changed(), "travel", False)
    assert document == (
        b'{"bucket":"travel","partition":0,"cas":1657324662872342531,"revSeqno":1,"lockTime":0,"bySeqno":3,'
        b'"vBucketUuid":%d,"flags":33554432,"expiration":0,"event":"mutation","key":"doc-0","content":{"vb": 0}}'
        % VBUUID
    )
    document = documents.with_metadata(changed(Opcode.DELETION, b""), "travel", False)
    assert isinstance(document, bytes)
    assert list(json.loads(document)) == [
        "bucket", "partition", "cas", "revSeqno", "bySeqno", "vBucketUuid", "event", "key",
    ]  # fmt: skip


def test_raw_json() -> None:
    assert documents.raw_json(changed(), "b", False) == b'{"vb": 0}'
    assert documents.raw_json(changed(value=b"no JSON"), "b", False) is SKIPPED
    assert documents.raw_json(changed(value=rb'"\ud800"'), "b", False) == rb'"\ud800"'
    for constant in (b"NaN", b"[Infinity]", b'{"a":-Infinity}'):
        assert documents.raw_json(changed(value=constant), "b", False) is SKIPPED
    assert documents.raw_json(changed(value=b"no JSON"), "b", True) is None
    assert documents.raw_json(changed(Opcode.DELETION), "b", False) is None


def test_a_struct_of_everything() -> None:
    message = documents.message(changed(value=b"\xff", cas=2**64 - 1, flags=2**31), "travel", False)
    assert dict(message.values) == {
        "event": "mutation", "partition": 0, "key": "doc-0", "cas": -1, "bySeqno": 3, "revSeqno": 1, "expiration": 0,
        "flags": -(2**31), "lockTime": 0, "content": b"\xff", "bucket": "travel", "vBucketUuid": VBUUID,
    }  # fmt: skip
    gone = documents.message(changed(Opcode.EXPIRATION), "travel", False)
    assert (gone.values["event"], gone.values["content"], gone.values["flags"]) == (
        "expiration", None, None,
    )  # fmt: skip


def records(**more: str) -> OfficialRecords:
    config = {**GOOD, **{f"couchbase.{key.replace('_', '.')}": text for key, text in more.items()}}
    return OfficialRecords(config, official_keys().parse(config))


def test_what_is_passed_over_has_a_record_in_its_place() -> None:
    """Recorded: key `ignored-<vbucket>`, a null, no headers, the event's own offset."""
    values = [changed(), changed(value=b"no JSON", vbucket=7), changed(key=b"_txn:1"),
             changed(collection=Collection("_system", "_query")),
             changed(collection=Collection("%x", "y"))]  # fmt: skip
    rows = records(black_hole_topic="hole", headers="key").rows(values)
    assert [(rows.topic, rows.keys, rows.values, rows.schema) for rows in rows] == [
        ("travel._default._default", [b"doc-0"], [b'{"vb": 0}'], None),
        ("hole", [b"ignored-7", b"ignored-0", b"ignored-0", b"ignored-0"], [None] * 4, None),
    ]
    assert [len(rows.headers) for rows in rows] == [1, 0]
    assert rows[1].events == values[1:]
    assert [rows.topic for rows in records().rows(values)] == ["travel._default._default"]
    all_of_them = records(event_filter="com.couchbase.connect.kafka.filter.AllPassIncludingSystemFilter").rows(values)
    assert [rows.topic for rows in all_of_them] == [
        "travel._default._default", "travel._system._query", "travel._x.y",
    ]  # fmt: skip


def test_a_vbucket_that_begins_with_now_has_a_record() -> None:
    """Recorded: this key, a null, and the offset of the vbucket's last change."""
    maker = records(initial_offset_topic="begin", stream_from="SAVED_OFFSET_OR_NOW")
    begins = {number: Position(6, PLACE._replace(snapshot_start=6, manifest_uid=0)) for number in (0, 1)}
    (rows,) = maker.first(begins, [1])
    key = b"__COUCHBASE_INITIAL_OFFSET_TOMBSTONE__a54ee32b-4a7e-4d98-aa36-45d8417e942a"
    assert (rows.topic, rows.keys, rows.values) == ("begin", [key], [None])
    assert partitions.offset(rows.events[0].seqno, rows.events[0].place) == {
        "bySeqno": 6, "collectionsManifestUid": 0, "snapshotEndSeqno": 6, "snapshotStartSeqno": 6, "vbuuid": VBUUID,
    }  # fmt: skip
    assert not records(initial_offset_topic="begin").first(begins, [1])


def test_headers_in_their_order() -> None:
    names = "rev,bucket,scope,collection,key,qualifiedKey,cas,partition,partitionUuid,seqno,expiry"
    (rows,) = records(headers=names, header_name_prefix="x-").rows([changed(collection=Collection("s", "c"))])
    assert rows.headers == [[
        ("x-rev", b"1"), ("x-bucket", b"travel"), ("x-scope", b"s"), ("x-collection", b"c"), ("x-key", b"doc-0"),
        ("x-qualifiedKey", b"s.c.doc-0"), ("x-cas", b"1657324662872342531"), ("x-partition", b"0"),
        ("x-partitionUuid", b"%d" % VBUUID), ("x-seqno", b"3"), ("x-expiry", None),
    ]]  # fmt: skip


def test_headers_are_written_by_the_header_converter() -> None:
    """Their types are the official connector's: texts, INT64, and INT32 for the partition; no expiry is a null."""
    config = {**GOOD, "couchbase.headers": "bucket,seqno,partition,expiry"}
    worker = {"header.converter": "org.apache.kafka.connect.json.JsonConverter"}
    maker = OfficialRecords(config, official_keys().parse(config), worker)
    (rows,) = maker.rows([changed(expiry=7), changed(vbucket=2)])
    read = [[None if raw is None else json.loads(raw) for _, raw in header] for header in rows.headers]
    types = [[value and (value["schema"]["type"], value["payload"]) for value in record] for record in read]
    assert types == [
        [("string", "travel"), ("int64", 3), ("int32", 0), ("int64", 7)],
        [("string", "travel"), ("int64", 3), ("int32", 2), None],
    ]
    bytes_only = {"header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}
    with pytest.raises(ConnectError, match=r"header\.converter .*ByteArrayConverter cannot write the headers"):
        OfficialRecords(config, official_keys().parse(config), bytes_only).rows([changed()])


def test_topics_of_collections() -> None:
    rows = records(collection_to_topic="s.c=old,s.d=other").rows(
        [changed(collection=Collection("s", name)) for name in ("c", "d", "%e")]
    )
    assert [rows.topic for rows in rows] == ["old", "other", "travel.s._e"]


def test_source_partitions_as_recorded() -> None:
    assert key_bytes("c", partitions.partition("travel", 0)) == b'["c",{"bucket":"travel","partition":"0"}]'
    assert partitions.partition("travel", 0, "c") == {"bucket": "travel", "partition": "0", "connector": "c"}


def test_offsets_as_recorded_and_back() -> None:
    written = value_bytes(partitions.offset(3, PLACE))
    assert written is not None
    assert json.loads(written) == {
        "bySeqno": 3, "vbuuid": VBUUID, "snapshotStartSeqno": 0, "snapshotEndSeqno": 6, "collectionsManifestUid": 2,
    }  # fmt: skip
    assert partitions.position(json.loads(written)) == Position(3, PLACE)
    assert partitions.position({"bySeqno": 5}) == Position(5, None)
    assert partitions.position({"bySeqno": 5, "vbuuid": -1}) == Position(5, HistoryPlace(2**64 - 1, 5, 5))


def test_vbuckets_in_runs() -> None:
    assert [partitions.written(run) for run in partitions.dealt(1024, 3)] == ["0..341", "342..682", "683..1023"]
    assert [partitions.written(run) for run in partitions.dealt(3, 2)] == ["0;1", "2"]
    assert len(partitions.dealt(2, 5)) == 2
    for text in ("0..341", "3;4", "7", "0;1;5..9"):
        assert partitions.written(partitions.read(text)) == text


def test_a_pace_is_held_each_second() -> None:
    pace = ChangePace(10)
    assert pace.left(5.1) == 10
    pace.taken(10)
    assert pace.left(5.9) == 0
    assert pace.left(6.0) == 10
    assert ChangePace(None).left(1.0) is None


@pytest.mark.parametrize(("text", "count"), [("100ms", 0.1), ("0", 0), (" 2M ", 120), ("1d", 86400)])
def test_durations(text: str, count: float) -> None:
    assert seconds(text) == count


@pytest.mark.parametrize(("text", "count"), [("16m", 16 << 20), ("0", 0), ("3B", 3)])
def test_sizes(text: str, count: int) -> None:
    assert size_bytes(text) == count


GOOD = {
    "couchbase.seed.nodes": "one:11210,[::1]", "couchbase.username": "u", "couchbase.password": "p",
    "couchbase.bucket": "travel",
    "couchbase.source.handler": "com.couchbase.connect.kafka.handler.source.RawJsonSourceHandler",
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"couchbase.bucket": ""}, "Missing required config property: couchbase.bucket"),
        (
            {"couchbase.scope[a.b]": "x"},
            "Invalid config property 'couchbase.scope[a.b]' ; property 'couchbase.scope' does not support contextual "
            "overrides (square brackets)",
        ),
        ({"couchbase.client.certificate.path": "/own.p12"}, "needs couchbase.enable.tls=true"),
        ({"couchbase.topic[a.b]": ""}, "names no topic: write a name"),
        ({"couchbase.topic": " "}, "names no topic: write a name"),
        (
            {"couchbase.topic": "", "couchbase.collections": "a.b,a.c", "couchbase.topic[a.b]": "x"},
            "each of couchbase.collections",
        ),
        ({"couchbase.topic[airline]": "x"}, "'airline' is no collection: write scope.collection"),
        ({"couchbase.jsonpath.filter[a.b]": "$.x"}, "couchbase.jsonpath.filter[a.b]: is not served: leave it empty"),
        ({"couchbase.scope": "a", "couchbase.collections": "a.b"}, "exclude each other"),
    ],
)
def test_configurations_of_the_official_connector(more: dict[str, str], message: str) -> None:
    assert CouchbaseSource.validate(GOOD) == []
    (error,) = CouchbaseSource.validate({**GOOD, **more})
    assert message in str(error)


def test_no_topic_is_needed_where_each_collection_has_its_own() -> None:
    own = {"couchbase.topic[a.b]": "x", "couchbase.collection.to.topic": "a.c=y"}
    assert CouchbaseSource.validate({**GOOD, "couchbase.topic": "", "couchbase.collections": "a.b,a.c", **own}) == []


def test_handlers_that_are_not_served_are_named() -> None:
    key = "couchbase.source.handler"
    handler = "com.couchbase.connect.kafka.handler.source.SchemaRegistrySourceHandler"
    with pytest.raises(Exception, match=r"SchemaRegistrySourceHandler.*RawJsonSourceHandler"):
        CouchbaseSource.config_def().parse({**GOOD, key: handler})
    with pytest.raises(Exception, match="not served"):
        CouchbaseSource.config_def().parse({**GOOD, "couchbase.jsonpath.filter": "$.a"})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("collection.to.topic", "a.b", "'a.b' names no topic: write scope.collection=topic"),
        ("collection.to.topic", "a=b", "'a' is no collection"),
        ("collections", "a.b=c.d", "is no collection"),
    ],
)
def test_names_of_collections_that_are_none(key: str, value: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        CouchbaseSource.config_def().parse({**GOOD, f"couchbase.{key}": value})


def test_how_a_bucket_is_reached_goes_to_who_watches_it() -> None:
    parsed = official_keys().parse({**GOOD, "couchbase.bootstrap.timeout": "7s", "couchbase.network": "external"})
    texts = reached_by(parsed, parsed["couchbase.seed.nodes"], "travel")
    access = access_by(texts)
    assert access == replace(access_of(parsed, parsed["couchbase.seed.nodes"], "travel"), compression="ENABLED")
    assert (access.user, access.password, access.bootstrap_seconds, access.network) == ("u", "p", 7.0, "external")


def test_a_task_at_its_offsets_rests_until_there_is_more() -> None:
    config = {**GOOD, "couchbase.partitions": "0;1"}
    offsets = {"0": {"bySeqno": 5, "vbuuid": 7}, "1": {"bySeqno": -1, "vbuuid": -1}}
    watch = CouchbaseSource.resting(config, lambda entry: offsets.get(entry["partition"]))
    assert isinstance(watch, VbucketWatch)
    assert watch.positions == {0: (5, 7), 1: (2**64 - 1, 2**64 - 1)}
    assert from_wire(to_wire(watch) or wire.Watch()) == watch
    offsets["1"] = {"bySeqno": 5}
    assert CouchbaseSource.resting(config, lambda entry: offsets.get(entry["partition"])) is None
    del offsets["1"]
    assert CouchbaseSource.resting(config, lambda entry: offsets.get(entry["partition"])) is None
    assert CouchbaseSource.resting({**config, "couchbase.stream.from": "BEGINNING"}, lambda _: {"bySeqno": 5}) is None


def test_what_a_worker_makes_of_classes_that_are_no_plugins() -> None:
    """A worker looks up classes before the connector validates them."""
    keys, find = CouchbaseSource.config_def(), PluginRegistry().find
    filters = "com.couchbase.connect.kafka.filter."
    for value in ({}, {"couchbase.event.filter": f"{filters}AllPassIncludingSystemFilter"}):
        answer = keys.validate({**GOOD, **value}, find)
        assert not [error for value in answer.values() for error in value.errors]
    other = {"couchbase.source.handler": f"{documents.HANDLERS}Other", "couchbase.event.filter": f"{filters}Other"}
    answer = keys.validate({**GOOD, **other}, find)
    assert "other handlers are not served" in answer["couchbase.source.handler"].errors[0]
    assert "AllPassFilter" in answer["couchbase.event.filter"].errors[0]


AS_PRINTED = {
    "topic": "couchbase-kafka-connector", "schema.name": "couchbaseschema", "couchbase.nodes": "localhost",
    "couchbase.bucket": "PMCONCURRENCY", "dcp.maximum.drainrate": "1000",
    "couchbase.dcpConnectionBufferSize": "0", "tasks.max": "1",
}  # fmt: skip


def test_both_configurations_of_2016_as_they_were_printed() -> None:
    other = {("couchbase.buckets" if key == "couchbase.bucket" else key): text for key, text in AS_PRINTED.items()}
    assert CouchbaseSource2016.validate(AS_PRINTED) == []
    assert CouchbaseSource2016.validate(other) == []
    (error,) = CouchbaseSource2016.validate({**AS_PRINTED, "couchbase.client.certificate.path": "/own.p12"})
    assert str(error).endswith(
        "/own.p12 for configuration couchbase.client.certificate.path: needs couchbase.enable.tls=true"
    )


@pytest.mark.parametrize(
    "key", ["topic", "schema.name", "couchbase.nodes", "couchbase.bucket", "dcp.maximum.drainrate"]
)
def test_what_2016_must_have(key: str) -> None:
    (error,) = CouchbaseSource2016.validate({name: text for name, text in AS_PRINTED.items() if name != key})
    assert str(error) == f"Configuration must include '{key}' setting"


@pytest.mark.parametrize(("rate", "message"), [("ten", "setting should be an integer"), ("0", "must be at least 1")])
def test_a_rate_that_is_none(rate: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        CouchbaseSource2016.config_def().parse({**AS_PRINTED, "dcp.maximum.drainrate": rate})
