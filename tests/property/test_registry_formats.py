"""Values that Protobuf and JSON Schema converters write can be read back, by themselves and others, for all shapes."""

from __future__ import annotations

import datetime
import decimal
import json
from dataclasses import replace
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.java.numbers import Float32
from keelman.connect.json_schema.converter import JsonSchemaConverter
from keelman.connect.protobuf.converter import ProtobufConverter
from keelman.connect.records import Column
from keelman.connect.schema import Field, Schema, Struct
from support.connectors.memory_registry import MemoryRegistry  # it lies with the unit tests

UTC = datetime.UTC
NAMES = st.text("abcdefghij", min_size=1, max_size=6)
DAYS = st.integers(-700_000, 2_900_000).map(
    lambda day: datetime.datetime(1970, 1, 1, tzinfo=UTC) + day * datetime.timedelta(1)
)
MS = datetime.timedelta(milliseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
Shaped = tuple[Schema, st.SearchStrategy[Any]]


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)


def decimals(scale: int) -> Shaped:
    schema = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", str(scale)),))
    numbers = st.integers(-(10**20), 10**20)
    return schema, numbers.map(lambda n: decimal.Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)))


LEAVES: list[Shaped] = [
    *((Schema(f"int{bits}"), whole(bits)) for bits in (8, 16, 32, 64)),
    (Schema("float"), st.floats(width=32, allow_nan=False, allow_infinity=False).map(Float32)),
    (Schema("double"), st.floats(allow_nan=False, allow_infinity=False)),
    (Schema("boolean"), st.booleans()),
    (Schema("string"), st.text(st.characters(exclude_categories=["Cs"]))),
    (Schema("bytes"), st.binary()),
    decimals(0),
    decimals(3),
    (DATE_SCHEMA, DAYS),
    (TIME_SCHEMA, st.integers(0, 86_399_999).map(lambda ms: EPOCH + ms * MS)),
    (TIMESTAMP_SCHEMA, st.integers(-(10**13), 10**14).map(lambda ms: EPOCH + ms * MS)),
]
KEYS: list[Shaped] = [
    (Schema("string"), LEAVES[7][1]),
    (Schema("int32"), whole(32)),
    (Schema("boolean"), st.booleans()),
]


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2, *, nested: bool = True) -> Shaped:
    """A schema of any type and a strategy for its values."""
    kind = draw(st.sampled_from(("leaf", "leaf", "array", "map", "struct") if nested and depth else ("leaf",)))
    if kind == "leaf":
        return draw(st.sampled_from(LEAVES))
    if kind == "struct":
        return draw(structs(depth - 1))
    value, values = draw(st.one_of(shapes(0), structs(depth - 1)))
    if kind == "array":
        return Schema("array", value=value), st.lists(values, max_size=3)
    key, keys = draw(st.sampled_from(KEYS))
    return Schema("map", key=key, value=value), st.dictionaries(keys, values, max_size=3)


@st.composite
def structs(draw: st.DrawFn, depth: int = 2) -> Shaped:
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique_by=str.lower))
    fields = {name: draw(shapes(depth)) for name in names}
    parts = {name: maybe(shaped) if draw(st.booleans()) else shaped for name, shaped in fields.items()}
    title = draw(st.none() | NAMES.map(lambda name: f"n.{name.title()}X{len(name)}"))
    schema = Schema("struct", name=title, fields=tuple(Field(name, part[0]) for name, part in parts.items()))
    values = st.fixed_dictionaries({name: part[1] for name, part in parts.items()})
    return schema, values.map(lambda value: Struct(schema, value))


def maybe(shaped: Shaped) -> Shaped:
    """A strategy for the same values, or null."""
    schema = replace(shaped[0], optional=True)

    def of_it(value: Any) -> Any:
        return Struct(schema, value.values) if isinstance(value, Struct) else value

    return schema, st.none() | shaped[1].map(of_it)


@st.composite
def records(draw: st.DrawFn) -> tuple[Schema, Struct]:
    schema, values = draw(structs())
    return schema, draw(values)


def plain(value: Any) -> Any:
    """Structs as dictionaries without their null fields."""
    if isinstance(value, Struct):
        return {name: plain(value) for name, value in value.values.items() if value is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(value) for key, value in value.items()} if isinstance(value, dict) else value


@settings(deadline=None, max_examples=100)
@given(records(), st.sampled_from(("BASE64", "NUMERIC")))
def test_json_there_and_back(record: tuple[Schema, Struct], form: str) -> None:
    schema, value = record
    registry = MemoryRegistry()
    converter = registry.converter(JsonSchemaConverter, **{"decimal.format": form})
    (payload,) = converter.from_connect(Column([value], schema))
    assert payload is not None
    column = converter.to_connect([payload])
    assert column.schema_of(0) == schema or schema.version is None
    assert plain(column.values[0]) == plain(value)
    if form == "NUMERIC":
        assert jsonschema_rs.Draft7Validator(json.loads(registry.schemas[0].text)).is_valid(json.loads(payload[5:]))


@settings(deadline=None, max_examples=25)
@given(records())
def test_protobuf_there_and_back(record: tuple[Schema, Struct]) -> None:
    schema, value = record
    converter = MemoryRegistry().converter(ProtobufConverter, **{"optional.for.nullables": "true"})
    (payload,) = converter.from_connect(Column([value], schema))
    assert payload is not None
    column = converter.to_connect([payload])
    actual_value = column.values[0]
    assert same(schema, value, actual_value)
    (again,) = converter.from_connect(Column([actual_value], column.schema))
    assert again is not None
    assert again[6:] == payload[6:], "read bytes are written unchanged"


def same(schema: Schema, value: Any, answer: Any) -> bool:
    """Whether the values are equal, if a missing array or map counts as an empty one, as in Protobuf."""
    if schema.type in ("array", "map"):
        assert schema.value is not None
        value, answer = value or (), answer or ()
        if isinstance(value, dict) and isinstance(answer, dict):
            return value.keys() == answer.keys() and all(same(schema.value, value[k], answer[k]) for k in value)
        return len(value) == len(answer) and all(map(same, [schema.value] * len(value), value, answer))
    if value is None or answer is None:
        return value is answer
    if isinstance(value, Struct):
        return all(
            same(field.schema, value.values.get(field.name), answer.values.get(field.name)) for field in schema.fields
        )
    return bool(value == answer)
