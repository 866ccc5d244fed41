"""Connect's data of many JSON trees of one schema at once, where that is certain to be what each would be read as."""

from __future__ import annotations

from types import NoneType
from typing import Any

from keelman.connect.columns import StructColumn, apart
from keelman.connect.converters.json_data import read
from keelman.connect.converters.logical import LOGICAL
from keelman.connect.records import Column
from keelman.connect.schema import INTEGER_RANGES, Schema


def read_structs(schema: Schema, trees: list[Any], *, defaults: bool) -> StructColumn | None:
    """As columns where all are structs; None where some are not. Raises DataError."""
    if schema.type != "struct" or not schema.fields or set(map(type, trees)) != {dict}:
        return None
    columns = apart([field.name for field in schema.fields], trees)
    return StructColumn(
        schema,
        {f.name: Column(read_all(f.schema, columns[f.name].values, defaults=defaults)) for f in schema.fields},
    )


def read_all(schema: Schema, trees: list[Any], *, defaults: bool) -> list[Any]:
    """As `read` of each. Raises DataError."""
    kinds = set(map(type, trees))
    if NoneType in kinds:
        there = [one for one in trees if one is not None]
        null = read(schema, None, defaults=defaults)
        values = iter(read_all(schema, there, defaults=defaults) if there else ())
        return [null if one is None else next(values) for one in trees]
    if schema.name in LOGICAL:
        return _one_by_one(schema, trees, defaults=defaults)
    kind = schema.type
    structs = read_structs(schema, trees, defaults=defaults)
    if structs is not None:
        return structs.rows(len(trees))
    if kind in INTEGER_RANGES and kinds == {int}:
        bound = INTEGER_RANGES[kind]
        if -bound <= min(trees) <= max(trees) < bound:
            return trees
    if (kind, kinds) in _AS_THEY_ARE:
        return trees
    return _one_by_one(schema, trees, defaults=defaults)


def _one_by_one(schema: Schema, trees: list[Any], *, defaults: bool) -> list[Any]:
    return [read(schema, one, defaults=defaults) for one in trees]


_AS_THEY_ARE = (("string", {str}), ("double", {float}), ("boolean", {bool}))
