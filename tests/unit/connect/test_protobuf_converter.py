"""Protobuf in Confluent's wire format: texts of schemas, messages, errors of bad input."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import code_pb2

from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.errors import DataError
from keelman.connect.protobuf.converter import ProtobufConverter, read_indexes, written_indexes
from keelman.connect.protobuf.names import ENUM, KNOWN_FILES, TAG, TYPE, UNION, entry_name, map_name, scrubbed
from keelman.connect.records import Column
from keelman.connect.registry.interface import Reference, SchemaKind, SchemaText, header
from keelman.connect.schema import STRING, Schema, Struct
from support.connectors.memory_registry import MemoryRegistry, mapping, plain, read_with, struct, write_with

there, back = partial(write_with, ProtobufConverter), partial(read_with, ProtobufConverter)
UTC = datetime.UTC
INT32, INT64, DOUBLE, BYTES = (Schema(kind) for kind in ("int32", "int64", "double", "bytes"))
MAYBE_TEXT, MAYBE_INT = Schema("string", optional=True), Schema("int32", optional=True)


def array(value: Schema) -> Schema:
    return Schema("array", value=value)


def money(precision: str, scale: str) -> Schema:
    parameters = (("scale", scale), ("connect.decimal.precision", precision))
    return Schema("bytes", name=DECIMAL, version=1, parameters=parameters)


def registered(text: str, *references: tuple[str, str]) -> MemoryRegistry:
    """A registry whose first schemas are the references and whose last is the text."""
    registry, refers = MemoryRegistry(), []
    for name, reference in references:
        registry.register(name, SchemaText(SchemaKind.PROTOBUF, reference, tuple(refers)))
        refers.append(Reference(name, name, 1))
    registry.register("t-value", SchemaText(SchemaKind.PROTOBUF, text, tuple(refers)))
    return registry


def test_a_schema_as_the_registry_gets_it(tmp_path: Path) -> None:
    schema = struct(
        "shop.orders.Order",
        id=INT64,
        level=Schema("int8"),
        price=money("9", "2"),
        tags=array(STRING),
        stock=mapping(STRING, INT32),
        buyer=struct("shop.Person", name=STRING, born=DATE_SCHEMA),
        nameless=struct(x=DOUBLE),
        at=TIMESTAMP_SCHEMA,
        hour=TIME_SCHEMA,
    )
    values = {
        "id": -1,
        "level": -3,
        "price": decimal.Decimal("12.30"),
        "tags": ["a", ""],
        "stock": {"é": 7},
        "buyer": Struct(schema.fields[5].schema, {"name": "n", "born": datetime.datetime(1969, 7, 20, tzinfo=UTC)}),
        "nameless": Struct(schema.fields[6].schema, {"x": 0.5}),
        "at": datetime.datetime(1960, 1, 1, 0, 0, 0, 1000, UTC),
        "hour": datetime.datetime(1970, 1, 1, 23, 59, 58, 7000, UTC),
    }
    registry, payload = there(schema, Struct(schema, values))
    (text,) = registry.schemas
    assert text.text == (Path(__file__).parent / "order.proto").read_text()
    assert not text.references
    assert payload is not None
    assert payload[:6] == header(1) + b"\0"
    read, read_value = back(registry, payload)
    assert read_value == values | {"buyer": plain(values["buyer"]), "nameless": {"x": 0.5}}
    assert read is not None
    assert (read.name, read.version) == ("Order", 1)
    assert back(registry, payload, **{"enhanced.protobuf.schema.support": "true"})[0].name == "shop.orders.Order"  # type: ignore[union-attr]
    order = parsed_by_another(tmp_path, text.text, "shop.orders.Order", payload[6:])
    assert (order.id, order.level, order.price.value, order.price.scale) == (-1, -3, b"\x04\xce", 2)
    assert (order.buyer.born.year, order.at.ToMilliseconds() % 1000, order.hour.nanos) == (1969, 1, 7_000_000)
    # The converted value is written as the same message again.
    again = there(read, registry.converter(ProtobufConverter).to_connect([payload]).values[0])
    assert again[1] is not None
    assert again[1][6:] == payload[6:]


def parsed_by_another(folder: Path, text: str, name: str, data: bytes) -> Any:
    """A message, written with protoc and parsed without the converter."""
    for file, value in {**KNOWN_FILES, "it.proto": text}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(value)
    site = Path(code_pb2.__file__).parents[2]
    words = [f"-I{folder}", f"-I{site}", "--include_imports", f"--descriptor_set_out={folder}/out", "it.proto"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *words], check=True, timeout=120)
    pool = DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString((folder / "out").read_bytes()).file:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name)).FromString(data)


@pytest.mark.parametrize(
    ("indexes", "data"),
    [([0], b"\0"), ([1], b"\x02\x02"), ([1, 0], b"\x04\x02\x00"), ([0, 0], b"\x04\x00\x00"), ([300], b"\x02\xd8\x04")],
)
def test_message_indexes(indexes: list[int], data: bytes) -> None:
    assert written_indexes(indexes) == data
    assert read_indexes(data) == indexes


@pytest.mark.parametrize(
    ("schema", "value", "index"),
    [
        (Schema("int8"), -5, 4),
        (INT64, 1 << 62, 2),
        (Schema("float"), 0.5, 1),
        (DOUBLE, 1.1, 0),
        (Schema("boolean"), True, 6),
        (STRING, "é", 7),
        (BYTES, b"\0\1", 8),
    ],
)
def test_single_values_are_googles_wrappers(schema: Schema, value: Any, index: int) -> None:
    registry, payload = there(schema, value)
    assert payload is not None
    assert payload[5 : 5 + len(written_indexes([index]))] == written_indexes([index])
    assert back(registry, payload)[1] == value
    assert back(registry, payload, **{"wrapper.for.raw.primitives": "false"})[1] == {"value": value}


def test_null_is_null() -> None:
    assert there(None, None)[1] is None
    assert there(MAYBE_TEXT, None)[1] is None
    assert MemoryRegistry().converter(ProtobufConverter).to_connect([None]).values == [None]


@pytest.mark.parametrize(
    ("config", "line", "answer"),
    [
        ({}, "  int32 n = 1;", {"n": 0, "t": ""}),
        ({"optional.for.nullables": "true"}, "  optional int32 n = 1;", {}),
        ({"wrapper.for.nullables": "true"}, "  google.protobuf.Int32Value n = 1;", {}),
    ],
)
def test_what_may_be_null(config: dict[str, str], line: str, answer: dict[str, Any]) -> None:
    schema = struct("N", n=MAYBE_INT, t=MAYBE_TEXT)
    registry, payload = there(schema, Struct(schema, {"n": None}), **config)
    assert payload is not None
    assert line in registry.schemas[0].text
    assert back(registry, payload, **config)[1] == answer
    registry, payload = there(schema, Struct(schema, {"n": 0, "t": "x"}), **config)
    assert payload is not None
    assert back(registry, payload, **config)[1] == {"n": 0, "t": "x"}


def test_defaults_stand_for_null() -> None:
    schema = struct("D", n=Schema("int32", optional=True, default=7))
    registry, payload = there(schema, Struct(schema, {}))
    assert payload is not None
    assert back(registry, payload)[1] == {"n": 7}
    config = {"ignore.default.for.nullables": "true"}
    registry, payload = there(schema, Struct(schema, {}), **config)
    assert payload == header(1) + b"\0"


UNIONS = """
syntax = "proto2";
package u;
import "other.proto";
enum Color { RED = 0; BLUE = 5; }
message Skipped { optional int32 z = 1; }
message Main {
  optional sint32 a = 4 [default = 3];
  required uint64 big = 5;
  oneof kind { string text = 1; Part part = 2; }
  optional Color color = 7;
  map<string, Part> parts = 8;
  repeated o.Other others = 9;
  message Part { optional bytes data = 1; optional Main next = 2; }
}
"""


def test_any_message_is_read() -> None:
    registry = registered(UNIONS, ("other.proto", 'syntax = "proto3"; package o; message Other { fixed32 n = 1; }'))
    number = len(registry.schemas)
    data = (
        b"\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # big: 2^64 - 1
        + sized(2, sized(1, b"a") + sized(2, b"\x28\x01"))
        + b"\x38\x05"
        + sized(8, sized(1, b"k") + sized(2, b"\x0a\x00"))
        + sized(9, b"\x0d\xff\xff\xff\xff")
    )
    schema, read_value = back(registry, header(number) + written_indexes([1]) + data)
    assert read_value == {
        "big": -1,  # Java's numbers have signs
        "kind_0": {"part": {"data": b"a", "next": {"big": 1, "parts": {}, "others": []}}},
        "color": "BLUE",
        "parts": {"k": {"data": b""}},
        "others": [{"n": 0xFFFFFFFF}],
    }
    assert schema is not None
    fields = {field.name: field.schema for field in schema.fields}
    assert list(fields) == ["kind_0", "a", "big", "color", "parts", "others"]
    assert fields["kind_0"].name == f"{UNION}.kind"
    assert fields["a"].parameters == ((TYPE, "sint32"), (TAG, "4"))
    assert fields["color"].parameters == ((ENUM, "Color"), (f"{ENUM}.RED", "0"), (f"{ENUM}.BLUE", "5"), (TAG, "7"))
    nested = {field.name: field.schema for field in fields["kind_0"].fields}["part"]
    assert nested.fields[1].schema.fields == schema.fields, "a message that holds itself"
    # Without a message index the schema's first message is used, with a nested message's index that message.
    assert back(registry, header(number) + b"\0" + b"\x08\x05")[1] == {"z": 5}
    assert back(registry, header(number) + written_indexes([1, 0]) + b"\x0a\x01x")[1] == {"data": b"x"}


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"generate.index.for.unions": "false"}, {"kind": {"text": "x"}}),
        ({"flatten.unions": "true"}, {"text": "x"}),
        ({"int.for.enums": "true"}, {"kind_0": {"text": "x"}, "color": 5}),
        ({"optional.for.proto2": "false"}, {"a": 3, "kind_0": {"text": "x"}, "color": "RED"}),
    ],
)
def test_ways_of_reading(config: dict[str, str], answer: dict[str, Any]) -> None:
    registry = registered(UNIONS, ("other.proto", 'syntax = "proto3"; package o; message Other { fixed32 n = 1; }'))
    data = b"\x0a\x01x\x28\x00" + (b"\x38\x05" if "color" in answer and answer["color"] == 5 else b"")
    payload = header(2) + written_indexes([1]) + data
    assert back(registry, payload, **config)[1] == {"big": 0, "parts": {}, "others": [], **answer}


def test_unions_and_enums_are_written_as_they_were_read() -> None:
    registry = registered(UNIONS, ("other.proto", 'syntax = "proto3"; package o; message Other { fixed32 n = 1; }'))
    data = b"\x0a\x01x\x20\x05\x28\x05\x38\x05\x4a\x05\x0d\x01\x00\x00\x00"
    column = registry.converter(ProtobufConverter).to_connect([header(2) + written_indexes([1]) + data])
    written, payload = there(column.schema, column.values[0])
    assert payload is not None
    assert payload[6:] == data
    assert "  oneof kind {\n    string text = 1;\n    Part part = 2;\n  }\n" in written.schemas[0].text
    assert "  sint32 a = 4;" in written.schemas[0].text


def test_names() -> None:
    assert scrubbed("a-b") == "a_b"
    assert scrubbed("9 ü~") == "x9__C3_BC_7E"
    assert scrubbed("_a") == "x_a"
    assert scrubbed("a_1") == "a_1"
    assert (entry_name("stock_items"), map_name("p.StockItemsEntry")) == ("StockItemsEntry", "p.stock_items")
    schema = struct("a-b.c d", **{"e f": STRING, "Kind": struct("x.Kind", y=STRING)})
    value = Struct(schema, {"e f": "1", "Kind": Struct(schema.fields[1].schema, {"y": "2"})})
    registry, payload = there(schema, value, **{"scrub.invalid.names": "true"})
    assert payload is not None
    assert back(registry, payload)[1] == {"e_f": "1", "Kind": {"y": "2"}}
    assert "  KindMessage Kind = 2;" in registry.schemas[0].text, "a field and a type cannot have one name"
    with pytest.raises(DataError, match="cannot be compiled"):
        there(schema, value)


def test_numbers_of_fields_are_kept_and_new_ones_are_free() -> None:
    schema = struct(
        "T", a=Schema("string", parameters=((TAG, "1"),)), new=STRING, b=Schema("string", parameters=((TAG, "3"),))
    )
    registry, _ = there(schema, Struct(schema, {"a": "", "b": "", "new": ""}))
    assert [line.split()[-1] for line in registry.schemas[0].text.splitlines() if "string" in line] == [
        "1;",
        "2;",
        "3;",
    ]


def test_another_schema_is_written_by_the_names_of_its_fields() -> None:
    registry = registered('syntax = "proto3"; message First {} message T { string b = 9; int64 a = 4; }')
    schema = struct("T", a=INT32, b=STRING)
    config = {"auto.register.schemas": "false", "use.latest.version": "true"}
    column = Column([Struct(schema, {"a": 1, "b": "x"})], schema)
    (payload,) = registry.converter(ProtobufConverter, **config).from_connect(column)
    assert payload == header(1) + written_indexes([1]) + b"\x20\x01\x4a\x01x"
    missing = struct("T", c=INT32)
    with pytest.raises(DataError, match="has no field c"):
        registry.converter(ProtobufConverter, **config).from_connect(Column([Struct(missing, {"c": 1})], missing))


def test_texts_that_use_confluents_options_without_importing_them() -> None:
    option = '(confluent.field_meta).params = {key: "connect.type", value: "int8"}'
    text = f'syntax = "proto3";\nmessage A {{ int32 n = 1 [{option}]; }}'
    schema, read_value = back(registered(text), header(1) + b"\0\x08\x05")
    assert read_value == {"n": 5}
    assert schema is not None
    assert schema.fields[0].schema.type == "int8"


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (None, 1, "has none"),
        (array(STRING), ["a"], "put it into a struct"),
        (TIMESTAMP_SCHEMA, datetime.datetime(2020, 1, 1, tzinfo=UTC), "put it into a struct"),
        (struct(a=array(array(STRING))), {"a": [["x"]]}, "ARRAY of ARRAY"),
        (struct(a=array(MAYBE_TEXT)), {"a": [None]}, "null is in an array"),
        (struct(a=INT32), {"a": "5"}, "Field a: .*INT32: str"),
        (struct(a=INT32), {"a": 1 << 31}, "Field a: .*INT32"),
        (struct(a=INT32), {"a": True}, "Field a: .*INT32"),
        (struct(a=Schema("int8")), {"a": 128}, "Field a: .*INT8"),
        (struct(a=STRING), {"a": None}, "Field a: .*null used for required"),
        (struct(a=STRING), {"a": "\ud800"}, "surrogates"),
        (struct(a=DATE_SCHEMA), {"a": datetime.datetime(2020, 1, 1, 1, tzinfo=UTC)}, "time fields"),
        (struct(a=TIME_SCHEMA), {"a": datetime.datetime(1970, 1, 2, tzinfo=UTC)}, "less than a day"),
        (struct(a=money("1", "0")), {"a": decimal.Decimal("NaN")}, "Invalid type for Decimal"),
        (struct("S", a=struct("X", b=STRING), c=struct("X", d=STRING)), {}, "Two structs named X"),
        (struct(a=Schema("string", parameters=((TAG, "x"),))), {"a": ""}, "illegal number"),
    ],
)
def test_what_cannot_be_written(schema: Schema | None, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        there(schema, Struct(schema, value) if isinstance(value, dict) and schema is not None else value)


def sized(number: int, data: bytes) -> bytes:
    """A field with a text, bytes or a message, as Protobuf writes it."""
    size, length = len(data), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


TREE = 'syntax = "proto3"; message Tree { Tree left = 1; string name = 2; google.type.Date day = 3; }'.replace(
    "; message", '; import "google/type/date.proto"; message'
)


def deep(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = sized(1, data)
    return data


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "0 bytes are too few"),
        (b"\0\0\0", "3 bytes are too few"),
        (b"\x01\0\0\0\x01\0", "magic byte"),
        (header(1), "ends within its message indexes"),
        (header(99) + b"\0", "no schema 99"),
        (header(1) + b"\x02", "ends within its message indexes"),
        (header(1) + b"\x02\x0e", r"no message with the indexes \[7\]"),
        (header(1) + b"\x02\x01", r"no message with the indexes \[-1\]"),
        (header(1) + b"\xff\xff\xff\xff\x0f", "message indexes follow"),
        (header(1) + b"\xff\xff\xff\xff\xff\xff", "more than five bytes"),
        (header(1) + b"\0\x12\x05ab", "is no Tree"),
        (header(1) + b"\0\x12\x02\xff\xfe", "is no Tree.*UTF-8"),
        (header(1) + b"\0" + deep(10_000), "is no Tree"),
        (header(1) + b"\0\x1a\x02\x10\x0d", "holds no date"),
    ],
)
def test_what_cannot_be_read(payload: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        back(registered(TREE), payload)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no schema at all", "cannot be compiled"),
        ('syntax = "proto3"; import "not/there.proto";', "not/there.proto"),
        ('syntax = "proto3"; ' + "message A { " * 10_000 + "}" * 10_000, "cannot be compiled"),
    ],
)
def test_schemas_that_are_none(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        back(registered(text), header(1) + b"\0")


def test_names_of_references_lead_nowhere_else() -> None:
    for name in ("../../x.proto", "/tmp/x.proto"):
        with pytest.raises(DataError, match="no name for a Protobuf file"):
            back(registered('syntax = "proto3"; message A {}', (name, 'syntax = "proto3";')), header(2) + b"\0")


def test_a_large_message() -> None:
    schema = struct(a=STRING)
    registry, payload = there(schema, Struct(schema, {"a": "x" * 10_000_000}))
    assert payload is not None
    assert len(back(registry, payload)[1]["a"]) == 10_000_000
    with pytest.raises(DataError, match="is no ConnectDefault1"):
        back(registry, payload[:-1])
