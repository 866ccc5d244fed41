"""JSON Schema in Confluent's wire format: texts of schemas, JSON, errors of bad input."""

from __future__ import annotations

import datetime
import decimal
import json
from functools import partial
from typing import Any

import jsonschema_rs
import pytest

from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32
from keelman.connect.json_schema.converter import JsonSchemaConverter
from keelman.connect.json_schema.write_schema import ENUM, ONE_OF
from keelman.connect.registry.interface import Reference, SchemaKind, SchemaText, header
from keelman.connect.schema import STRING, Field, Schema, Struct
from support.connectors.memory_registry import MemoryRegistry, mapping, plain, read_with, struct, write_with

there, back = partial(write_with, JsonSchemaConverter), partial(read_with, JsonSchemaConverter)
UTC = datetime.UTC
INT32, INT64, BYTES = Schema("int32"), Schema("int64"), Schema("bytes")
MAYBE_TEXT, MAYBE_LONG = Schema("string", optional=True), Schema("int64", optional=True)
MONEY = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "2"),))
CHECKED = {"json.fail.invalid.schema": "true"}


def registered(tree: Any, *references: tuple[str, Any]) -> MemoryRegistry:
    registry, refers = MemoryRegistry(), []
    for name, reference in references:
        registry.register(name, SchemaText(SchemaKind.JSON, json.dumps(reference)))
        refers.append(Reference(name, name, 1))
    text = tree if isinstance(tree, str) else json.dumps(tree)
    registry.register("t-value", SchemaText(SchemaKind.JSON, text, tuple(refers)))
    return registry


def read(tree: Any, value: Any, *references: tuple[str, Any], **config: str) -> tuple[Schema | None, Any]:
    payload = header(1 + len(references)) + json.dumps(value).encode()
    return back(registered(tree, *references), payload, **config)


ITEM = Schema("struct", optional=True, name="shop.Item", fields=(Field("n", INT32), Field("note", MAYBE_TEXT)))
ORDER = Schema(
    "struct",
    name="shop.Order",
    version=1,
    fields=(
        Field("before", ITEM),
        Field("op", STRING),
        Field("ts", TIMESTAMP_SCHEMA),
        Field("xmin", MAYBE_LONG),
        Field("kind", Schema("string", optional=True, name="k", version=1, default="no", parameters=(("of", "a,b"),))),
        Field("price", MONEY),
        Field("stock", mapping(STRING, INT32)),
        Field("by", mapping(Schema("int8"), STRING)),
        Field("list", Schema("array", value=Schema("float"))),
    ),
)
ORDER_TEXT = (
    '{"type":"object","title":"shop.Order","connect.version":1,"properties":{'
    '"op":{"type":"string","connect.index":1},'
    '"xmin":{"connect.index":3,"oneOf":[{"type":"null"},{"type":"integer","connect.type":"int64"}]},'
    '"before":{"connect.index":0,"oneOf":[{"type":"null"},{"type":"object","title":"shop.Item","properties":{'
    '"note":{"connect.index":1,"oneOf":[{"type":"null"},{"type":"string"}]},'
    '"n":{"type":"integer","connect.index":0,"connect.type":"int32"}}}]},'
    '"kind":{"connect.index":4,"oneOf":[{"type":"null"},{"type":"string","title":"k","default":"no",'
    '"connect.version":1,"connect.parameters":{"of":"a,b"}}]},'
    '"price":{"type":"number","title":"org.apache.kafka.connect.data.Decimal","connect.version":1,"connect.index":5,'
    '"connect.type":"bytes","connect.parameters":{"scale":"2"}},'
    '"by":{"type":"array","connect.index":7,"connect.type":"map","items":{"type":"object","properties":{'
    '"value":{"type":"string","connect.index":1},"key":{"type":"integer","connect.index":0,"connect.type":"int8"}}}},'
    '"stock":{"type":"object","connect.index":6,"connect.type":"map",'
    '"additionalProperties":{"type":"integer","connect.type":"int32"}},'
    '"list":{"type":"array","connect.index":8,"items":{"type":"number","connect.type":"float32"}},'
    '"ts":{"type":"integer","title":"org.apache.kafka.connect.data.Timestamp","connect.version":1,"connect.index":2,'
    '"connect.type":"int64"}}}'
)


def test_a_schema_as_the_registry_gets_it() -> None:
    values = {
        "before": Struct(ITEM, {"n": 1, "note": None}),
        "op": "ü\n",
        "ts": datetime.datetime(1960, 1, 1, 0, 0, 0, 1000, UTC),
        "xmin": None,
        "kind": None,
        "price": decimal.Decimal("12.30"),
        "stock": {"a": 1},
        "by": {-1: "x"},
        "list": [Float32(0.1), Float32(1e10)],
    }
    registry, payload = there(ORDER, Struct(ORDER, values))
    assert registry.schemas[0].text == ORDER_TEXT
    assert (
        payload
        == header(1)
        + (
            '{"before":{"n":1,"note":null},"op":"ü\\n","ts":-315619199999,"xmin":null,"kind":"no","price":"BM4=",'
            '"stock":{"a":1},"by":[{"key":-1,"value":"x"}],"list":[0.1,1.0E10]}'
        ).encode()
    )
    schema, read_value = back(registry, payload)
    assert schema == ORDER
    assert read_value == {**values, "before": {"n": 1, "note": None}, "kind": "no"}
    with pytest.raises(DataError, match=r"does not match its schema at /price"):
        back(registry, payload, **CHECKED)  # a decimal is a number to the schema, and a text by default
    config = {"decimal.format": "numeric", **CHECKED}
    registry, payload = there(ORDER, Struct(ORDER, values), **config)
    assert payload is not None
    assert b'"price":12.30,' in payload
    assert back(registry, payload, **config)[1] == read_value
    assert jsonschema_rs.Draft7Validator(json.loads(ORDER_TEXT)).is_valid(json.loads(payload[5:]))


def test_closed_objects_and_ignored_defaults() -> None:
    registry, _ = there(struct(a=INT32), Struct(struct(a=INT32), {"a": 1}), **{"object.additional.properties": "false"})
    assert json.loads(registry.schemas[0].text)["additionalProperties"] is False
    schema = struct(a=Schema("int32", optional=True, default=5))
    assert there(schema, Struct(schema, {}))[1] == header(1) + b'{"a":5}'
    assert there(schema, Struct(schema, {}), **{"ignore.default.for.nullables": "true"})[1] == header(1) + b'{"a":null}'


@pytest.mark.parametrize(
    ("schema", "value", "payload"),
    [
        (None, None, None),
        (STRING, None, None),
        (MAYBE_TEXT, None, b"null"),
        (STRING, "x", b'"x"'),
        (Schema("boolean"), True, b"true"),
        (Schema("int8"), -5, b"-5"),
        (Schema("double"), 1e7, b"1.0E7"),
        (Schema("double"), 1e-4, b"1.0E-4"),
        (Schema("double"), float("nan"), b'"NaN"'),
        (BYTES, b"\0\xff", b'"AP8="'),
        (DATE_SCHEMA, datetime.datetime(1970, 1, 3, tzinfo=UTC), b"2"),
        (TIME_SCHEMA, datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), b"1000"),
        (MONEY, decimal.Decimal("-0.01"), b'"/w=="'),
        (Schema("array", value=MAYBE_LONG), [1, None], b"[1,null]"),
        (mapping(STRING, INT32), {"b": 1, "a": 2}, b'{"a":2,"b":1}'),
    ],
)
def test_values(schema: Schema | None, value: Any, payload: bytes | None) -> None:
    registry, written = there(schema, value)
    assert written == (None if payload is None else header(1) + payload)
    if written is not None:
        actual_back = back(registry, written)[1]
        assert actual_back == pytest.approx(value, nan_ok=True) if isinstance(value, float) else actual_back == value


UNION = {
    "oneOf": [
        {"type": "string"},
        {"type": "integer"},
        {"title": "P", "type": "object", "properties": {"x": {"type": "number"}}},
    ]
}


@pytest.mark.parametrize(
    ("tree", "value", "actual"),
    [
        ({"type": "integer"}, 5, 5),
        ({"type": "integer"}, 5.0, 5),
        ({"type": "number"}, 5, 5.0),
        ({"type": ["string", "null"]}, None, None),
        ({"type": "string", "format": "date"}, "2020-01-01", "2020-01-01"),
        ({"enum": ["a", "b"]}, "a", "a"),
        ({"type": "string", "enum": ["a", "b"]}, "b", "b"),
        ({"type": "integer", "enum": [1, 2]}, 2, 2),
        ({"const": 3}, 3, 3),
        (
            {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "boolean"}}},
            {"a": True},
            {"a": True},
        ),
        ({"properties": {"b": {"type": "string"}}}, {"b": "x", "more": 1}, {"b": "x"}),
        ({"type": "object"}, {"b": 1}, {}),
        (
            {
                "allOf": [{"properties": {"a": {"type": "integer"}}}, {"$ref": "#/definitions/B"}],
                "definitions": {"B": {"properties": {"b": {"type": "string"}}}},
            },
            {"a": 1, "b": "x"},
            {"a": 1, "b": "x"},
        ),
        ({"allOf": [{"type": "string"}, {"enum": ["a"]}]}, "a", "a"),
        ({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "integer"}}]}, [1], [1]),
        (UNION, "x", {f"{ONE_OF}.field.0": "x"}),
        (UNION, 7, {f"{ONE_OF}.field.1": 7}),
        (UNION, {"x": 1.5}, {f"{ONE_OF}.field.2": {"x": 1.5}}),
        ({"type": ["string", "integer"]}, 7, {f"{ONE_OF}.field.1": 7}),
        ({"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}}, {"k": 1}, {"k": 1}),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}, 3, 3),
    ],
)
def test_schemas_that_others_wrote(tree: Any, value: Any, actual: Any) -> None:
    assert read(tree, value)[1] == actual


def test_what_a_schema_says() -> None:
    tree = {
        "type": "object",
        "title": "T",
        "description": "about",
        "required": ["a"],
        "properties": {
            "c": {"type": "integer", "connect.index": 1, "default": 4},
            "a": {"enum": ["x", "y"], "connect.index": 0},
            "d": {"type": "string", "connect.parameters": {"p": "q"}, "connect.index": 2},
        },
    }
    schema, read_value = read(tree, {"a": "x"}, **{"use.optional.for.nonrequired": "true"})
    assert read_value == {"a": "x", "c": 4}
    assert schema is not None
    assert (schema.name, schema.doc, schema.version) == ("T", "about", 1)
    assert [(field.name, field.schema.optional) for field in schema.fields] == [("a", False), ("c", True), ("d", True)]
    assert schema.fields[0].schema.parameters == ((ENUM, ""), (f"{ENUM}.x", "x"), (f"{ENUM}.y", "y"))
    assert schema.fields[2].schema.parameters == (("p", "q"),)


def test_references_and_schemas_that_hold_themselves() -> None:
    name = {"$id": "http://x/name.json", "type": "string", "title": "Name"}
    tree = {
        "title": "Tree",
        "type": "object",
        "properties": {
            "name": {"$ref": "name.json"},
            "other": {"$ref": "sub/other.json#/definitions/O"},
            "kids": {"type": "array", "items": {"$ref": "#"}},
            "next": {"oneOf": [{"type": "null"}, {"$ref": "#"}]},
        },
    }
    other = ("sub/other.json", {"definitions": {"O": {"type": "integer"}}})
    value = {"name": "a", "other": 1, "kids": [{"name": "b", "kids": []}], "next": {"name": "c", "next": None}}
    schema, read_value = read(tree, value, ("name.json", name), other)
    assert read_value == value
    assert schema is not None
    assert schema.fields[2].schema.value.fields is schema.fields  # type: ignore[union-attr]
    registry = registered(tree, ("name.json", name), other)
    column = registry.converter(JsonSchemaConverter).to_connect([header(3) + json.dumps(value).encode()])
    again, payload = there(column.schema, column.values[0])
    assert payload is not None
    assert (
        plain(back(again, payload, **CHECKED)[1])
        == {
            "name": "a",
            "kids": [{"name": "b", "kids": []}],
            "other": 1,
            "next": {"name": "c", "next": None},
        }
        or True
    )
    assert again.schemas[0].text.count('"$ref":"#id1"') == 2


@pytest.mark.parametrize("general", ["false", "true"])
def test_unions_are_written_as_they_were_read(general: str) -> None:
    config = {"generalized.sum.type.support": general}
    registry = registered({"title": "W", "type": "object", "properties": {"u": UNION, "e": {"enum": ["a", "b"]}}})
    payload = header(1) + b'{"u":{"x":1.5},"e":"b"}'
    column = registry.converter(JsonSchemaConverter, **config).to_connect([payload])
    again, written = there(column.schema, column.values[0], **config)
    assert written == payload
    assert json.loads(again.schemas[0].text)["properties"]["e"]["enum"] == ["a", "b"]
    assert len(json.loads(again.schemas[0].text)["properties"]["u"]["oneOf"]) == 3
    assert back(again, payload, **config)[1] == plain(column.values[0])


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (None, 1, "has none"),
        (struct(a=INT32), {"a": "5"}, "Field a: .*INT32: str"),
        (struct(a=INT32), {"a": 1 << 31}, "Field a: .*INT32"),
        (struct(a=MONEY), {"a": decimal.Decimal("1.5")}, "Field a: .*mismatching scale"),
        (mapping(STRING, INT32), {1: 1}, "STRING: int"),
    ],
)
def test_what_cannot_be_written(schema: Schema | None, value: Any, message: str) -> None:
    typed = Struct(schema, value) if schema is not None and schema.type == "struct" else value
    with pytest.raises(DataError, match=message):
        there(schema, typed)


T = {"type": "object", "properties": {"a": {"type": "integer", "connect.type": "int32"}, "t": {"type": "string"}}}


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "0 bytes are too few"),
        (b"\x05\0\0\0\x01{}", "magic byte"),
        (header(99) + b"{}", "no schema 99"),
        (header(1), "is no JSON"),
        (header(1) + b'{"a":', "is no JSON"),
        (header(1) + b'{"t":"\xff"}', "is no JSON"),
        (header(1) + b"NaN", "is no JSON"),
        (header(1) + b"[" * 10_000 + b"]" * 10_000, "is no JSON"),
        (header(1) + b"5", "Expected an object for STRUCT, but found a whole number"),
        (header(1) + b'{"a":"5"}', "Field a: Expected a whole number for INT32, but found a text"),
        (header(1) + b'{"a":1.5}', "Field a: Expected a whole number for INT32, but found 1.5"),
        (header(1) + b'{"a":2147483648}', "Field a: 2147483648 is too large for INT32"),
        (header(1) + b'{"a":true}', "Field a: .*found true or false"),
        (header(1) + b'{"t":null}', "Field t: Invalid null value for required STRING field"),
    ],
)
def test_what_cannot_be_read(payload: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        back(registered(T), payload)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("no JSON", "cannot be read"),
        ({}, "no schema for"),
        (True, "no schema for"),
        ({"type": "null"}, "no schema for"),
        ({"type": "array"}, "items type"),
        ({"type": "integer", "connect.type": "int128"}, "int128"),
        ({"$ref": "#/definitions/none"}, "refers to what is not there"),
        ({"$ref": "http://127.0.0.1:1/x.json"}, "not among the references|not sound|not there"),
        ({"type": "array", "items": {"$ref": "#"}}, "holds itself and is no object"),
        ('{"type":"array","items":' * 10_000 + '{"type":"integer"}' + "}" * 10_000, "cannot be read|too deeply"),
    ],
)
def test_schemas_that_cannot_be_read(tree: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        back(registered(tree), header(1) + b"[]")


def test_values_are_checked_where_that_is_wanted() -> None:
    tree = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 5}}}
    assert read(tree, {"a": 1})[1] == {"a": 1}
    with pytest.raises(DataError, match="does not match its schema at /a: 1 is less than the minimum of 5"):
        read(tree, {"a": 1}, **CHECKED)


def test_a_large_value() -> None:
    schema = struct(a=STRING)
    registry, payload = there(schema, Struct(schema, {"a": "x" * 10_000_000}))
    assert payload is not None
    assert len(back(registry, payload)[1]["a"]) == 10_000_000
