"""Payloads of AvroConverter can be read back, by itself and by the library alone.

Any other input results in data or in an error about the data.
"""

from __future__ import annotations

import datetime
import decimal
import io
import json
from contextlib import suppress
from typing import Any

import fastavro
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from keelman.connect.avro.converter import AvroConverter
from keelman.connect.converters.logical import DATE_SCHEMA, DECIMAL, TIME_SCHEMA, TIMESTAMP_SCHEMA
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import Float32
from keelman.connect.records import Column
from keelman.connect.schema import INTEGER_RANGES, Field, Schema, Struct
from support.connectors.memory_registry import MemoryRegistry

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = [Schema(kind) for kind in (*INTEGER_RANGES, "float", "double", "boolean", "bytes", "string")]
LOGICAL = [
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "3"),)),
]


def optional(schema: Schema) -> Schema:
    return Schema(**{**{n: getattr(schema, n) for n in Schema.__slots__}, "optional": True})


def wider(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    names = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1, max_size=4)
    structs = names.flatmap(
        lambda value: st.tuples(*(inner for _ in value)).map(
            lambda schemas: Schema("struct", fields=tuple(map(Field, value, schemas)))
        )
    )
    keys = st.sampled_from([Schema("string"), Schema("int32"), Schema("string", optional=True)])
    return st.one_of(
        inner.map(lambda value: Schema("array", value=value)),
        st.builds(lambda key, value: Schema("map", key=key, value=value), keys, inner),
        structs,
        inner.map(optional),
    )


SCHEMAS = st.recursive(st.sampled_from([*PLAIN, *LOGICAL]), wider, max_leaves=6)


def values(schema: Schema) -> st.SearchStrategy[Any]:
    actual_values = _values(schema)
    return st.one_of(st.none(), actual_values) if schema.optional else actual_values


def _values(schema: Schema) -> st.SearchStrategy[Any]:  # noqa: PLR0911
    kind = schema.type
    if schema.name == DECIMAL:
        return st.integers(-(10**20), 10**20).map(lambda n: decimal.Decimal(n).scaleb(-3))
    if schema.name == DATE_SCHEMA.name:
        return st.integers(-(10**5), 10**5).map(lambda n: EPOCH + datetime.timedelta(days=n))
    if schema.name in (TIME_SCHEMA.name, TIMESTAMP_SCHEMA.name):
        return st.integers(0, 86_399_999).map(lambda n: EPOCH + datetime.timedelta(milliseconds=n))
    if kind in INTEGER_RANGES:
        return st.integers(-INTEGER_RANGES[kind], INTEGER_RANGES[kind] - 1)
    if kind == "float":
        return st.floats(width=32, allow_nan=False).map(Float32)
    if kind in ("double", "boolean", "bytes", "string"):
        fields = {"double": st.floats(allow_nan=False), "boolean": st.booleans(), "bytes": st.binary(max_size=8)}
        return fields.get(kind, TEXTS)
    if kind == "array":
        assert schema.value is not None
        return st.lists(values(schema.value), max_size=3)
    if kind == "map":
        assert schema.key is not None
        assert schema.value is not None
        return st.dictionaries(values(schema.key), values(schema.value), max_size=3)
    return st.fixed_dictionaries({f.name: values(f.schema) for f in schema.fields}).map(lambda v: Struct(schema, v))


def written(converter: AvroConverter, schema: Schema, value: Any) -> bytes | None:
    """The payload. Skips nested maps without string keys, whose entries get equal names in Confluent's mapping."""
    try:
        (payload,) = converter.from_connect(Column([value], schema))
    except DataError as error:
        assume("Can't redefine: io.confluent.connect.avro.MapEntry" not in str(error))
        raise
    return payload


CASES = SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), values(schema)))


@QUIET
@given(CASES)
def test_what_is_written_is_read_back(case: tuple[Schema, Any]) -> None:
    schema, value = case
    registry = MemoryRegistry(versions=False)
    converter = registry.converter(AvroConverter)
    payload = written(converter, schema, value)
    if value is None:
        assert payload is None
        return
    assert payload is not None
    column = converter.to_connect([payload])
    assert (column.schema_of(0), column.values[0]) == (schema, value)
    if schema.type != "bytes" or schema.optional:
        text = json.loads(registry.schemas[-1].text)
        stream = io.BytesIO(payload)
        stream.seek(5)
        fastavro.schemaless_reader(stream, fastavro.parse_schema(text), None)
        assert stream.read() == b"", "another reader takes all of it"


@QUIET
@given(CASES, st.data())
def test_damaged_bytes_are_an_error_about_data_or_other_data(case: tuple[Schema, Any], data: st.DataObject) -> None:
    schema, value = case
    converter = MemoryRegistry().converter(AvroConverter)
    payload = written(converter, schema, value)
    if payload is None:
        return
    damaged = bytearray(payload)
    for _ in range(3):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 127))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    with suppress(DataError):
        converter.to_connect([cut])


PLAIN_DATA = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXTS, st.binary()
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@QUIET
@given(PLAIN_DATA)
def test_data_without_a_schema_is_read_back(value: Any) -> None:
    converter = MemoryRegistry().converter(AvroConverter)
    column = converter.to_connect(converter.from_connect(Column([value])))
    assert (column.schema_of(0), column.values) == (None, [value])
