"""Defaults of Avro schemas as values of Connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.avro.logical import reader
from keelman.connect.avro.parsed import Avro, Parsed
from keelman.connect.converters.logical import LOGICAL
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, cut
from keelman.connect.schema import Schema, Struct


def read_default(parsed: Parsed, schema: Schema, node: Mapping[str, Any], value: Any) -> Any:
    """A default's JSON as Connect's value; None for one that does not fit, as in Connect."""
    try:
        found = _plain(parsed, schema, node, value)
        return reader(schema)(found) if schema.name in LOGICAL else found
    except (TypeError, ValueError, KeyError, AttributeError, DataError):
        return None


def _plain(parsed: Parsed, schema: Schema, node: Mapping[str, Any], value: Any) -> Any:  # noqa: PLR0911
    if value is None:
        return None
    kind = schema.type
    if kind in INTEGERS:
        return cut(value, INTEGERS[kind][1])
    if kind in ("float", "double"):
        return Float32(value) if kind == "float" else float(value)
    if kind == "boolean":
        return value is True
    if kind == "bytes":
        return str(value).encode("latin-1")
    if kind == "array" and schema.value is not None:
        inner = mapping_of(parsed, node["items"])
        return [read_default(parsed, schema.value, inner, one) for one in value]
    if kind == "map" and schema.value is not None:
        if "values" in node:
            inner = mapping_of(parsed, node["values"])
            return {key: read_default(parsed, schema.value, inner, one) for key, one in value.items()}
        return None
    if kind == "struct":
        inner_of = {one["name"]: one["type"] for one in node["fields"]}
        return Struct(
            schema,
            {
                one.name: read_default(
                    parsed, one.schema, mapping_of(parsed, _only(parsed, inner_of[one.name])), value.get(one.name)
                )
                for one in schema.fields
            },
        )
    return str(value)


def _only(parsed: Parsed, avro: Avro) -> Avro:
    """The one member of an optional's union."""
    node = parsed.resolved(avro)
    if isinstance(node, list):
        return next((one for one in node if one != "null"), "null")
    return avro


def mapping_of(parsed: Parsed, avro: Avro) -> Mapping[str, Any]:
    """A schema's node; of a union one that says no more than that."""
    node = parsed.resolved(avro)
    return node if isinstance(node, Mapping) else {"type": "union"}
