"""Source offsets byte for byte as Kafka Connect writes them."""

import pytest

from keelman.connect.errors import DataError
from keelman.connect.java.text import double_text, hash_order, java_text, json_text
from keelman.connect.offsets import CommittedOffsets, key_bytes, parse_key, value_bytes
from keelman.connect.schema import STRING, Field, Schema, Struct
from support.partitioner import murmur2, partition_for


@pytest.mark.parametrize(
    ("connector", "partition", "key", "code", "index"),
    [
        (
            "local-file-source",
            {"filename": "/data/in"},
            b'["local-file-source",{"filename":"/data/in"}]',
            0x1269419C,
            14,
        ),
        (
            "m",
            {"topic": "t", "partition": 0, "cluster": "a"},
            b'["m",{"cluster":"a","partition":0,"topic":"t"}]',
            0x986F0AD5,
            3,
        ),
    ],
)
def test_keys_and_partitions_of_the_reference(
    connector: str, partition: dict[str, object], key: bytes, code: int, index: int
) -> None:
    assert key_bytes(connector, partition) == key
    assert murmur2(key) == code
    assert partition_for(key, 25) == index
    assert parse_key(key) == (connector, partition)


def test_a_key_of_the_topic_is_used_again_whatever_its_bytes() -> None:
    raw = b'["c", {"b": 1, "a": "x"}]'
    offsets = CommittedOffsets("c", [(raw, b'{"n":5}'), (b'["other",{"a":1}]', b'{"n":6}'), (b"junk", b"{}")])
    assert offsets.offset({"a": "x", "b": 1}) == {"n": 5}
    assert offsets.record({"a": "x", "b": 1}, {"n": 7}) == (raw, b'{"n":7}')
    assert offsets.offset({"a": "x", "b": "1"}) is None
    assert offsets.record({"a": "x", "b": "1"}, None)[1] is None


def test_a_tombstone_leaves_the_key_and_no_offset() -> None:
    raw = b'["c",{"a":1}]'
    offsets = CommittedOffsets("c", [(raw, b'{"n":5}'), (raw, None)])
    assert offsets.offset({"a": 1}) is None
    assert offsets.record({"a": 1}, {"n": 1}) == (raw, b'{"n":1}')


@pytest.mark.parametrize("offset", [{"a": [1]}, {"a": {"b": 1}}, {1: "a"}])
def test_only_flat_offsets(offset: dict[object, object]) -> None:
    with pytest.raises(DataError, match="string keys and primitive values"):
        value_bytes(offset)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (1e10, "1.0E10"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-123.456, "-123.456"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_as_java_writes_them(number: float, text: str) -> None:
    assert double_text(number) == text


def test_json_as_jackson_writes_it() -> None:
    assert json_text({"é": 'a\x1f\n"\\/', "n": None, "t": [True, 1, 1.5e10]}) == (
        '{"é":"a\\u001F\\n\\"\\\\/","n":null,"t":[true,1,1.5E10]}'
    )


def test_java_texts() -> None:
    schema = Schema("struct", fields=(Field("a", STRING), Field("b", STRING), Field("c", STRING)))
    assert java_text(Struct(schema, {"a": "x", "c": "y"})) == "Struct{a=x,c=y}"
    assert java_text({"some_key": 0}) == "{some_key=0}"
    assert java_text([None, True, "s", 2.0]) == "[null, true, s, 2.0]"
    assert java_text(None) == "null"


def test_hash_maps_order() -> None:
    # "Aa" and "BB" have one hash code, so they keep their order; a 13th key doubles the table.
    assert hash_order(["a", "BB", "Aa"]) == ["BB", "Aa", "a"]
    assert hash_order([chr(c) for c in range(ord("m"), ord("a") - 1, -1)]) == list("abcdefghijklm")
