"""Converters return the bytes and values that Kafka Connect's return."""

import datetime
import decimal
import json

import pytest

from keelman.connect.columns import StructColumn
from keelman.connect.converters.configured import converter_for
from keelman.connect.converters.converter import ByteArrayConverter, StringConverter
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.records import Column
from keelman.connect.schema import STRING, Field, Schema, Struct


def test_utf8_lines_pass_as_they_are() -> None:
    lines = [b"a", "é".encode()]
    assert StringConverter({}).from_connect(Column(lines, STRING, utf8=True)) is lines
    assert StringConverter({"converter.encoding": "UTF-16BE"}).from_connect(Column(lines, STRING, utf8=True)) == [
        b"\0a",
        b"\0\xe9",
    ]
    assert StringConverter({}).to_connect([b"x", None, b"\xff"]).texts().values == ["x", None, "\ufffd"]
    assert StringConverter({}).from_connect(Column([None, 1.0, {"a": 1}])) == [None, b"1.0", b"{a=1}"]


def test_bytes_take_only_bytes() -> None:
    assert ByteArrayConverter({}).from_connect(Column([b"x", None])) == [b"x", None]
    with pytest.raises(DataError, match="STRING"):
        ByteArrayConverter({}).from_connect(Column([b"x"], STRING, utf8=True))
    with pytest.raises(DataError, match="Long"):
        ByteArrayConverter({}).from_connect(Column([1]))


def test_the_connectors_converter_does_not_take_the_workers_keys() -> None:
    worker = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    assert converter_for("value", {}, worker).config["schemas.enable"] is False
    assert converter_for("value", {"value.converter": "JsonConverter"}, worker).config["schemas.enable"] is True


POINT = Schema(
    "struct",
    name="p",
    fields=(
        Field("i", Schema("int32")),
        Field("d", Schema("double", optional=True, default=0.5)),
        Field("t", Schema("int64", name="org.apache.kafka.connect.data.Timestamp", version=1)),
        Field("m", Schema("map", key=Schema("int8"), value=STRING)),
        Field(
            "x",
            Schema("bytes", name="org.apache.kafka.connect.data.Decimal", version=1, parameters=(("scale", "2"),)),
        ),
    ),
)


def test_json_with_schemas_there_and_back() -> None:
    at = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
    values = {"i": 1, "d": None, "t": at, "m": {1: "a"}, "x": decimal.Decimal("-1.50")}
    (payload,) = JsonConverter({}).from_connect(Column([Struct(POINT, values)], POINT))
    assert payload == (
        b'{"schema":{"type":"struct","fields":['
        b'{"type":"int32","optional":false,"field":"i"},'
        b'{"type":"double","optional":true,"default":0.5,"field":"d"},'
        b'{"type":"int64","optional":false,"name":"org.apache.kafka.connect.data.Timestamp","version":1,"field":"t"},'
        b'{"type":"map","keys":{"type":"int8","optional":false},"values":{"type":"string","optional":false},'
        b'"optional":false,"field":"m"},'
        b'{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
        b'"parameters":{"scale":"2"},"field":"x"}'
        b'],"optional":false,"name":"p"},'
        b'"payload":{"i":1,"d":0.5,"t":1577923200000,"m":[[1,"a"]],"x":"/2o="}}'
    )
    column = JsonConverter({}).to_connect([payload, None])
    assert column.schemas == [POINT, None]
    assert column.values == [Struct(POINT, {**values, "d": 0.5}), None]


def test_json_without_schemas() -> None:
    plain = JsonConverter({"schemas.enable": "false"})
    assert plain.to_connect([b'{"a":[1,2.5,null]}', None]).values == [{"a": [1, 2.5, None]}, None]
    assert plain.from_connect(Column(["é", 1e10, {"a": b"x"}, None])) == [
        '"é"'.encode(),
        b"1.0E10",
        b'{"a":"eA=="}',
        None,
    ]


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"nope", "^Converting byte"),
        (b'{"a":1}', 'requires "schema" and "payload" fields'),
        (b'{"schema":{"type":"int8","optional":false},"payload":null}', "null"),
        (b'{"schema":{"type":"nothing"},"payload":1}', "Unknown schema type: nothing"),
        (b'{"schema":{"type":"struct","fields":[]},"payload":[]}', "JSON objects, but found ARRAY"),
    ],
)
def test_bad_json_is_a_data_error(payload: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        JsonConverter({}).to_connect([payload])


def test_a_required_null_cannot_be_written() -> None:
    with pytest.raises(DataError, match="required"):
        JsonConverter({}).from_connect(Column([None], STRING))
    assert JsonConverter({}).from_connect(Column([None])) == [None]
    assert json.loads(JsonConverter({}).from_connect(Column([None], Schema("string", optional=True)))[0] or b"") == {
        "schema": {"type": "string", "optional": True},
        "payload": None,
    }


def test_a_schema_of_the_configuration_is_that_of_all_records_but_nulls() -> None:
    """Record by record, and as columns for a chain."""
    content = '{"type":"struct","fields":[{"field":"at","type":"int64","optional":true}]}'
    converter = converter_for(
        "header", {}, {"header.converter": JsonConverter.name, "header.converter.schema.content": content}
    )
    schema = Schema("struct", fields=(Field("at", Schema("int64", optional=True)),))
    read = converter.to_connect([b'{"at":1}', None, b"{}"])
    assert read.values == [Struct(schema, {"at": 1}), None, Struct(schema, {"at": None})]
    assert [read.schema_of(n) for n in range(3)] == [schema, None, schema]
    columns = converter.to_columns([b'{"at":1}', b'{"at":2}'])
    assert isinstance(columns, StructColumn)
    assert (columns.schema, columns.rows(2)) == (schema, [Struct(schema, {"at": 1}), Struct(schema, {"at": 2})])


def test_a_schema_that_cannot_be_read_names_its_key() -> None:
    with pytest.raises(
        ConfigValueError, match=r"for configuration value.converter.schema.content: Unknown schema type: x; "
    ):
        converter_for(
            "value", {"value.converter": JsonConverter.name, "value.converter.schema.content": '{"type":"x"}'}, {}
        )
