"""AvroConverter beyond the recorded cases: nulls, bad input, names, ids, recursive schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keelman.connect.avro.converter import AvroConverter
from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.topic_payloads import read, written
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.records import Column
from keelman.connect.registry.interface import SchemaKind, SchemaText, header
from keelman.connect.schema import STRING, Field, Schema, Struct
from support.connectors.memory_registry import MemoryRegistry

TREE = {
    "type": "record",
    "name": "N",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "N"]}],
}


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()


def registered(registry: MemoryRegistry, schema: Any) -> bytes:
    return header(registry.register("t-value", SchemaText(SchemaKind.AVRO, json.dumps(schema))))


def test_bytes_alone_have_no_length_as_in_confluents_serializer(registry: MemoryRegistry) -> None:
    converter = registry.converter(AvroConverter)
    (payload,) = converter.from_connect(Column([b"abc"], Schema("bytes")))
    assert payload == header(1) + b"abc"
    assert converter.to_connect([payload]).values == [b"abc"]


def test_null_is_null_where_it_may_be(registry: MemoryRegistry) -> None:
    converter = registry.converter(AvroConverter)
    assert converter.from_connect(Column([None, None], schemas=[None, Schema("int32", optional=True)])) == [None, None]
    assert registry.schemas == [], "nothing is registered for nothing"
    with pytest.raises(DataError, match="null"):
        converter.from_connect(Column([None], STRING))
    assert converter.to_connect([None]).values == [None]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (Schema("int32"), 1 << 31, "beyond its range"),
        (Schema("int8"), True, "Invalid type for INT8: class java.lang.Boolean"),
        (STRING, 5, "Invalid type for STRING: class java.lang.Long"),
        (Schema("map", key=STRING, value=STRING), {1: "x"}, "not all keys are strings"),
        (Schema("struct", fields=(Field("a", STRING),)), {"a": "x"}, "Invalid type for STRUCT"),
        (Schema("struct", fields=(Field("a", STRING),)), Struct(Schema("struct"), {}), "Mismatching struct schema"),
    ],
)
def test_a_value_of_another_type_is_an_error(
    registry: MemoryRegistry, schema: Schema, value: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        registry.converter(AvroConverter).from_connect(Column([value], schema))


def test_an_error_names_the_field(registry: MemoryRegistry) -> None:
    schema = Schema("struct", fields=(Field("a", STRING), Field("b", Schema("int32"))))
    with pytest.raises(DataError, match=r"field b\)"):
        registry.converter(AvroConverter).from_connect(Column([Struct(schema, {"a": "x", "b": "y"})], schema))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "too few"),
        (b"\x01\x00\x00\x00\x01\x02", "Unknown magic byte"),
        (b"\x00\x00\x00\x00\x63\x02", "no schema 99"),
        (header(1) + b"\x02", "EOFError"),
        (header(1) + b"\x02\x02" * 10_000 + b"\x00\x00", "RecursionError"),
    ],
)
def test_poison_is_an_error_about_data(registry: MemoryRegistry, payload: bytes, message: str) -> None:
    registered(registry, TREE)
    with pytest.raises(DataError, match=f"topic t to Avro: .*{message}"):
        registry.converter(AvroConverter).to_connect([payload])


def test_nested_lists_without_end_are_an_error_about_data(registry: MemoryRegistry) -> None:
    value: Any = 5
    for _ in range(10_000):
        value = [value]
    with pytest.raises(DataError, match="RecursionError"):
        registry.converter(AvroConverter).from_connect(Column([value]))


def test_a_schema_that_holds_itself_is_read_and_written(registry: MemoryRegistry) -> None:
    payload = registered(registry, TREE) + b"\x02\x02\x04\x02\x06\x00"
    converter = registry.converter(AvroConverter)
    column = converter.to_connect([payload])
    first = column.values[0]
    assert [first.values["v"], first.values["next"].values["v"]] == [1, 2]
    assert first.values["next"].values["next"].values == {"v": 3, "next": None}
    (again,) = converter.from_connect(column)
    assert again is not None
    assert again[5:] == payload[5:]


def test_names_are_scrubbed_where_that_is_wanted(registry: MemoryRegistry) -> None:
    schema = Schema("struct", name="a-b.C d", fields=(Field("1 x-y", Schema("int32")),))
    converter = registry.converter(AvroConverter, **{"scrub.invalid.names": "true"})
    (payload,) = converter.from_connect(Column([Struct(schema, {"1 x-y": 7})], schema))
    assert payload == header(1) + b"\x0e"
    written_schema = json.loads(registry.schemas[0].text)
    assert (written_schema["namespace"], written_schema["name"], written_schema["fields"][0]["name"]) == (
        "a_b",
        "C_d",
        "x1_x_y",
    )


def test_records_of_several_topics_have_their_subjects(registry: MemoryRegistry) -> None:
    converter = registry.converter(AvroConverter, role="key")
    topics = ["a", "b", "a"]
    payloads = written(converter, Column(["x", "y", "z"], STRING), topics)
    assert registry.subjects == {"a-key": [1], "b-key": [1]}
    assert read(converter, payloads, topics).values == ["x", "y", "z"]


def test_the_newest_schema_is_written_with_where_that_is_wanted(registry: MemoryRegistry) -> None:
    mine = Schema("struct", name="R", fields=(Field("a", STRING), Field("b", Schema("int32", optional=True))))
    newest = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "c", "type": "int", "default": 9}, {"name": "a", "type": ["null", "string"]}],
    }
    begin = registered(registry, newest)
    expected = {"auto.register.schemas": "false", "use.latest.version": "true"}
    (payload,) = registry.converter(AvroConverter, **expected).from_connect(
        Column([Struct(mine, {"a": "x", "b": 1})], mine)
    )
    assert payload == begin + b"\x12\x02\x02x"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema.registry.url", ""),
        ("schema.registry.url", "registry:8081"),
        ("value.subject.name.strategy", "MyStrategy"),
        ("basic.auth.credentials.source", "FILE"),
    ],
)
def test_what_is_not_legal_is_told_under_the_full_key(key: str, value: str) -> None:
    config = {"schema.registry.url": "http://r:8081", key: value}
    fields = {"value.converter": AvroConverter.name, **{f"value.converter.{k}": v for k, v in config.items()}}
    with pytest.raises(ConfigValueError, match=f"value.converter.{key}"):
        converter_for("value", fields, {})
