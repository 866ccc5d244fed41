"""Collections by manifest and system events, and cluster maps with several networks."""

import json
import struct
from typing import Any

import pytest

from keelman.couchbase.cluster_map import NodeAddress, parse_map
from keelman.couchbase.errors import CouchbaseError, ProtocolError
from keelman.couchbase.manifest import Collection, CollectionManifest, Selection, parse_manifest, split_key
from keelman.couchbase.seeds import seeds_of

TEXT = (
    b'{"uid":"2","scopes":[{"name":"_default","uid":"0","collections":[{"name":"_default","uid":"0"}]},'
    b'{"name":"inventory","uid":"8","collections":[{"name":"airline","uid":"a","maxTTL":0}]}]}'
)


def test_a_selection_of_what_was_dropped() -> None:
    manifest = parse_manifest(TEXT)
    airline, hotel = Collection("inventory", "airline"), Collection("inventory", "hotel")
    assert not Selection().is_gone(manifest)
    assert not Selection("inventory").is_gone(manifest)
    assert Selection("nowhere").is_gone(manifest)
    assert not Selection("", [hotel, airline]).is_gone(manifest)
    assert Selection("", [hotel]).is_gone(manifest)
    both = Selection("", [hotel, airline])
    assert (both.missing(manifest), both.ids(manifest)) == ([hotel], [10])
    assert both.value(manifest, 0, widened=False) == {"uid": "0", "collections": ["a"]}
    assert both.value(manifest, 0, widened=True) == {"uid": "0"}, "a collection that is made again is among all"
    for selection, widened in ((both, None), (Selection("", [hotel]), True), (Selection("", [hotel]), False)):
        with pytest.raises(CouchbaseError, match=r"no collection 'inventory\.hotel'"):
            selection.value(manifest, 0, widened=widened)


def test_what_is_selected_follows_the_manifest() -> None:
    airline, hotel = Collection("inventory", "airline"), Collection("inventory", "hotel")
    manifest = CollectionManifest(selection=Selection("", [airline, hotel]))
    assert manifest.selected == {}
    manifest.learn(parse_manifest(TEXT))
    assert manifest.selected == {10: airline}
    manifest.apply(0, b"hotel", struct.pack(">QIII", 3, 8, 11, 0))
    manifest.apply(0, b"other", struct.pack(">QIII", 4, 8, 12, 0))
    assert manifest.selected == {10: airline, 11: hotel}
    manifest.apply(1, b"", struct.pack(">QII", 5, 8, 10))
    assert manifest.selected == {11: hotel}
    scope = CollectionManifest(selection=Selection("inventory"))
    scope.learn(parse_manifest(TEXT))
    assert scope.selected == {10: airline}
    assert CollectionManifest().selected == {0: Collection("_default", "_default")}


def test_of_several_changes_at_once_the_last_alone_has_the_new_uid() -> None:
    manifest = parse_manifest(TEXT)
    assert manifest.apply(0, b"hotel", struct.pack(">QIII", 2, 8, 11, 0)) == 2
    assert manifest.apply(0, b"route", struct.pack(">QIII", 3, 8, 12, 0)) == 3
    assert [manifest.collections[at].name for at in (10, 11, 12)] == ["airline", "hotel", "route"]


def test_names_come_from_the_manifest_and_newer_events() -> None:
    manifest = parse_manifest(TEXT)
    assert manifest.collections[10] == Collection("inventory", "airline")
    assert manifest.apply(0, b"old", struct.pack(">QII", 1, 8, 99)) == 1
    assert 99 not in manifest.collections
    manifest.apply(0, b"hotel", struct.pack(">QIII", 3, 8, 11, 0))
    assert manifest.collections[11] == Collection("inventory", "hotel")
    manifest.apply(1, b"", struct.pack(">QII", 4, 8, 10))
    assert 10 not in manifest.collections
    manifest.apply(4, b"", struct.pack(">QI", 5, 8))
    assert set(manifest.collections) == {0}


def test_a_selection_names_ids() -> None:
    manifest = parse_manifest(TEXT)
    assert Selection().value(manifest, 2) == {"uid": "2"}
    assert Selection("inventory").value(manifest, 0) == {"uid": "0", "scope": "8"}
    chosen = Selection("", [Collection("inventory", "airline")])
    assert chosen.value(manifest, 26) == {"uid": "1a", "collections": ["a"]}
    with pytest.raises(CouchbaseError, match="no scope 'nowhere': it has _default, inventory"):
        Selection("nowhere").value(manifest, 0)
    with pytest.raises(CouchbaseError, match=r"no collection 'inventory\.hotel'"):
        Selection("", [Collection("inventory", "hotel")]).value(manifest, 0)


@pytest.mark.parametrize(("number", "prefix"), [(0, "00"), (9, "09"), (0x80, "8001"), (0xFFFFFFFF, "ffffffff0f")])
def test_keys_have_their_collection_before_them(number: int, prefix: str) -> None:
    assert split_key(bytes.fromhex(prefix) + b"doc") == (number, b"doc")


@pytest.mark.parametrize("key", [b"", b"\x80", b"\xff" * 9])
def test_a_key_without_a_collection(key: bytes) -> None:
    with pytest.raises(ProtocolError):
        split_key(key)


def test_a_manifest_that_is_none() -> None:
    with pytest.raises(ProtocolError):
        parse_manifest(b"{}")
    with pytest.raises(ProtocolError):
        CollectionManifest().apply(0, b"x", b"\0")


def mapped(*seeds: str, network: str = "auto", **more: Any) -> Any:
    nodes = [
        {"services": {"kv": 11210, "kvSSL": 11207}, "hostname": "10.0.0.1",
         "alternateAddresses": {"external": {"hostname": "one.example", "ports": {"kv": 31210}}}},
        {"services": {"n1ql": 8093}, "hostname": "10.0.0.9"},
        {"services": {"kv": 11210}},
    ]  # fmt: skip
    fields = {"rev": 3, "name": "b", "nodeLocator": "vbucket", "nodesExt": nodes,
             "vBucketServerMap": {"vBucketMap": [[0, 1], [1, -1]]}, **more}  # fmt: skip
    return parse_map(json.dumps(fields).encode(), NodeAddress("asked", 1), seeds_of(seeds), tls=False, network=network)


def test_nodes_without_data_are_not_counted() -> None:
    cluster_map = mapped("10.0.0.1")
    assert cluster_map.active(0) == NodeAddress("10.0.0.1", 11210)
    assert cluster_map.active(1) == NodeAddress("asked", 11210)
    assert cluster_map.copies(1) == [NodeAddress("asked", 11210)]


def test_a_vbucket_that_a_map_does_not_have() -> None:
    cluster_map = mapped("10.0.0.1", vBucketServerMap={"vBucketMap": [[0], []]})
    assert [cluster_map.active(number) for number in (1, 2)] == [None, None]
    assert [cluster_map.copies(number) for number in (1, 2)] == [[], []]


def test_the_network_is_that_of_a_seed() -> None:
    assert mapped("one.example").active(0) == NodeAddress("one.example", 31210)
    assert mapped("one.example:31210").active(0) == NodeAddress("one.example", 31210)
    assert mapped("one.example:9").active(0) == NodeAddress("10.0.0.1", 11210)
    assert mapped("x", network="external").active(1) is None


def test_newer_is_by_epoch_and_revision() -> None:
    old, new = mapped("x"), mapped("x", revEpoch=1, rev=1)
    assert new.is_newer_than(old)
    assert not old.is_newer_than(new)
    assert not old.is_newer_than(old)


def test_a_bucket_without_vbuckets() -> None:
    with pytest.raises(CouchbaseError, match="only buckets with vbuckets"):
        mapped("x", nodeLocator="ketama")


@pytest.mark.parametrize("text", ["host:99999", "a b", "http://x", "::1:5"])
def test_seeds_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="is no node"):
        seeds_of([text])
