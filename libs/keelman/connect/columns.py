"""A batch whose records are all of one shape, as columns: chains go over those without touching a record each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from keelman.connect.errors import DataError
from keelman.connect.java import hash_order, json_string, json_text, utf8_text
from keelman.connect.json_data import Plain
from keelman.connect.record import Header
from keelman.connect.records import Column
from keelman.connect.schema import Schema

# What a JSON string does not have as it is; beyond the first plane Jackson writes escapes, too.
_SPECIAL = re.compile(rb'["\\\x00-\x09\x0b-\x1f\xf0-\xff]')


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value in every record."""

    value: Any


@dataclass(slots=True)
class StructColumn:
    """Structs of one schema, or without one maps with the same keys, as a column for each field."""

    schema: Schema | None
    fields: dict[str, Column | Constant]


@dataclass(slots=True)
class ColumnBatch:
    """`count` records for one topic. A key or value of None is null in all records; headers are those of all."""

    topic: str
    count: int
    value: Column | StructColumn
    key: Column | StructColumn | None = None
    partitions: Sequence[int | None] | None = None
    timestamps_ms: Sequence[int | None] | None = None
    headers: list[Header] = field(default_factory=list)


def json_payloads(structs: StructColumn, count: int, plain: Plain, envelope: str | None) -> list[bytes] | None:
    """JSON of all, an object each; None where some value needs to be looked at by itself.

    `envelope` is the schema's JSON where it stands beside the payload.
    """
    begin = "" if envelope is None else f'{{"schema":{envelope},"payload":'
    names = hash_order(structs.fields) if structs.schema is None else [f.name for f in structs.schema.fields]
    schemas = {} if structs.schema is None else {f.name: f.schema for f in structs.schema.fields}
    fixed: list[bytes] = []
    columns: list[list[bytes]] = []
    text = f"{begin}{{"
    for index, name in enumerate(names):
        text += ("," if index else "") + json_string(name) + ":"
        one = structs.fields.get(name, Constant(None))
        if isinstance(one, Constant):
            text += json_text(plain.tree(schemas.get(name), one.value))
            continue
        values = _texts(one, schemas.get(name), plain)
        if values is None:
            return None
        quote = '"' if one.utf8 else ""
        fixed.append(f"{text}{quote}".encode())
        columns.append(values)
        text = quote
    behind = (text + "}" + ("" if envelope is None else "}")).encode()
    if not columns:
        return [behind] * count
    if len(columns) == 1:
        return [fixed[0] + value + behind for value in columns[0]]
    pieces = [piece for before, column in zip(fixed, columns, strict=True) for piece in (repeat(before), column)]
    return list(map(b"".join, zip(*pieces, repeat(behind), strict=False)))


def _texts(column: Column, schema: Schema | None, plain: Plain) -> list[bytes] | None:
    """The JSON of each, of strings without their quotes; None for what may be null."""
    if not column.utf8:
        try:
            return [json_text(plain.tree(schema, value)).encode() for value in column.values]
        except DataError:
            return None
    try:
        whole = b"\n".join(column.values)
    except TypeError:
        return None
    if _SPECIAL.search(whole) is None and whole.count(b"\n") == max(0, len(column.values) - 1) and _is_utf8(whole):
        return column.values
    return [json_string(utf8_text(value))[1:-1].encode() for value in column.values]


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
