"""Decimals through all kinds of payloads, both ways: no digit is lost, and numbers that are too large are refused."""

from __future__ import annotations

import decimal
from typing import Any

import pytest

from keelman.connect.avro.converter import AvroConverter
from keelman.connect.converters.converter import Converter
from keelman.connect.converters.json_converter import JsonConverter
from keelman.connect.converters.json_text import MOST_DIGITS
from keelman.connect.converters.literals import parse_literal
from keelman.connect.converters.logical import DECIMAL, MAX_DIGITS
from keelman.connect.errors import DataError
from keelman.connect.json_schema.converter import JsonSchemaConverter
from keelman.connect.protobuf.converter import ProtobufConverter
from keelman.connect.records import Column
from keelman.connect.schema import Field, Schema, Struct
from keelman.connect.transforms.cast import cast
from support.connectors.memory_registry import MemoryRegistry

DIGITS = "123456789012345678901234567890123456789"
NUMERIC = {"decimal.format": "NUMERIC"}


def converters() -> dict[str, Converter]:
    registry = MemoryRegistry()
    return {
        "JSON": JsonConverter({"converter.type": "value"}),
        "JSON, numbers": JsonConverter({"converter.type": "value", **NUMERIC}),
        "Avro": registry.converter(AvroConverter),
        "Protobuf": registry.converter(ProtobufConverter),
        "JSON Schema": registry.converter(JsonSchemaConverter),
        "JSON Schema, numbers": registry.converter(JsonSchemaConverter, **NUMERIC),
    }


def holding(scale: object, value: Any) -> tuple[Schema, Struct]:
    inner = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", str(scale)),))
    schema = Schema("struct", name="Price", fields=(Field("a", inner),))
    return schema, Struct(schema, {"a": value})


@pytest.mark.parametrize("kind", converters())
@pytest.mark.parametrize(
    "text",
    [
        f"{DIGITS[:-2]}.{DIGITS[-2:]}",
        f"-{DIGITS}",
        "0.00",
        "-128",
        "1E-9999",
        "7E+9999",
        "9" * 5000 + ".10",
        "8" * 5000,
    ],
    ids=lambda text: text[:12],
)
def test_all_digits_come_back(kind: str, text: str) -> None:
    converter, value = converters()[kind], decimal.Decimal(text)
    schema, struct = holding(-int(value.as_tuple().exponent), value)
    if "numbers" in kind and len(value.as_tuple().digits) > MOST_DIGITS:  # Connect's parser accepts no longer numbers
        with pytest.raises(DataError) as refused:
            converter.to_connect(converter.from_connect(Column([struct], schema)))
        assert f"digits, more than {MOST_DIGITS}" in f"{refused.value} {refused.value.__cause__}"
        return
    for values in ([struct], [struct, struct]):
        read = converter.to_connect(converter.from_connect(Column(values, schema)))
        for single_value in read.texts().values:
            read_decimal = single_value.values["a"]
            assert read_decimal == value
            assert read_decimal.as_tuple() == value.as_tuple()


@pytest.mark.parametrize("kind", converters())
@pytest.mark.parametrize(
    ("scale", "value"),
    [
        (3_000_000, decimal.Decimal("1E-3000000")),
        (0, decimal.Decimal("NaN")),
        (0, decimal.Decimal("1" * (MAX_DIGITS + 1))),
        (0, 1.5),
    ],
    ids=["huge scale", "no number", "too many digits", "no decimal"],
)
def test_what_cannot_be_written_is_told(kind: str, scale: object, value: Any) -> None:
    schema, struct = holding(scale, value)
    with pytest.raises(DataError):
        converters()[kind].from_connect(Column([struct], schema))


@pytest.mark.parametrize("kind", sorted(converters().keys() - {"Protobuf"}))  # their values carry a scale of their own
def test_a_scale_that_is_none_is_told(kind: str) -> None:
    schema, struct = holding("two", decimal.Decimal("1.00"))
    with pytest.raises(DataError, match="scale"):
        converters()[kind].from_connect(Column([struct], schema))


@pytest.mark.parametrize(
    "number",
    ["1E1000000000000000000", "1" * (MAX_DIGITS + 1), f'"{"A" * 100_000}"', "NaN"],
    ids=lambda text: text[:12],
)
def test_what_cannot_be_read_is_told(number: str) -> None:
    schema, _ = holding(2, None)
    plain = converters()["JSON"]
    (payload,) = plain.from_connect(Column([Struct(schema, {"a": decimal.Decimal("1.00")})], schema))
    assert payload is not None
    with pytest.raises(DataError):
        plain.to_connect([payload.replace(b'"ZA=="', number.encode())])


def test_a_decimal_beside_others_in_json() -> None:
    inner = (Field("price", holding(2, None)[0].fields[0].schema), Field("n", Schema("int64")))
    schema = Schema("struct", fields=inner)
    registry = MemoryRegistry()
    converter = registry.converter(JsonSchemaConverter)
    (payload,) = converter.from_connect(Column([Struct(schema, {"price": decimal.Decimal("1.00"), "n": 1})], schema))
    assert payload is not None
    assert converter.to_connect([payload.replace(b'"n":1', b'"n":1e3')]).values[0].values["n"] == 1000
    for number in (b"1e30", b"1.5", b"1e999999"):
        with pytest.raises(DataError, match=r"too large|whole number"):
            converter.to_connect([payload.replace(b'"n":1', b'"n":' + number)])


def test_literals_and_casts_of_huge_exponents() -> None:
    assert parse_literal("1e9999999999999999999999") == (Schema("string"), "1e9999999999999999999999")
    schema, value = parse_literal("1" * 5000)
    assert schema is not None
    assert schema.name == DECIMAL
    assert value == int(decimal.Decimal("1" * 5000))
    assert cast(schema, decimal.Decimal("3E+900000000"), "int64") == 0
    assert cast(schema, decimal.Decimal("3E-900000000"), "int64") == 0
    assert cast(schema, decimal.Decimal("-128"), "int8") == -128
