"""Converts between Connect's values and Avro's bytes for one schema: made once, then called for each value."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

from fastavro import _read_py, schemaless_reader, schemaless_writer

from keelman.connect.avro.names import ANYTHING, AvroOptions
from keelman.connect.avro.parsed import Parsed, guarded, holds_itself, parse
from keelman.connect.avro.read_schema import read_schema
from keelman.connect.avro.reading import read_anything, read_function
from keelman.connect.avro.write_schema import anything, full_name, write_schema
from keelman.connect.avro.writing import write_anything, write_function
from keelman.connect.java.text import json_text
from keelman.connect.registry.interface import HEADER_BYTES, SchemaKind, SchemaText
from keelman.connect.schema import Schema

Write = Callable[[Any], bytes | bytearray]
Read = Callable[[bytes], Any]
MAX_LEVELS = 1000
FAULTS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
"""The library's errors about values and bytes that do not fit the schema."""


def schema_text(schema: Schema | None, options: AvroOptions) -> tuple[SchemaText, str]:
    """Returns the text of the Avro schema for values of a schema, and its full name. Raises DataError."""
    avro = write_schema(schema, options)
    return SchemaText(SchemaKind.AVRO, json_text(avro)), full_name(avro)


class _Last:
    """Receives the library's output in one piece."""

    __slots__ = ("data",)

    def write(self, data: bytearray) -> None:
        """Called by the library once for each value."""
        self.data = data


def write_bytes(schema: Schema | None, avro: SchemaText, references: Mapping[str, str], options: AvroOptions) -> Write:
    """Returns a function that writes values of a schema in an Avro schema. Raises DataError; the function also FAULTS.

    A bytes value alone is written as is, without a length, as Confluent's serializer does.
    """
    parsed = parse(avro.text, references)
    function = write_anything if schema is None else write_function(schema, parsed, options)
    if _plain_bytes(parsed):
        return lambda value: bytes(function(value))
    whole, last = parsed.whole, _Last()
    stream: Any = last
    if parsed.wrapped:

        def write_wrapped(value: Any) -> bytearray:
            schemaless_writer(stream, whole, {"v": function(value)})
            return last.data

        return write_wrapped

    def write(value: Any) -> bytearray:
        schemaless_writer(stream, whole, function(value))
        return last.data

    return write


def read_bytes(
    avro: SchemaText, references: Mapping[str, str], options: AvroOptions, version: int | None
) -> tuple[Schema | None, Read]:
    """Returns the schema of values that were written with an Avro schema, and a function that reads them after a
    payload's header.

    Raises DataError; the function also FAULTS. `version` is that of the schema in the registry.
    """
    parsed = parse(avro.text, references)
    if _is_anything(parsed):
        return None, lambda payload: read_anything(_read_carefully(parsed.whole, payload))
    schema = read_schema(parsed, options, version)
    function, whole = read_function(schema, parsed, options), guarded(parsed.whole)
    read = _read_carefully if holds_itself(parsed) else _read
    if _plain_bytes(parsed):
        return schema, lambda payload: function(payload[HEADER_BYTES:])
    if parsed.wrapped:
        return schema, lambda payload: function(read(whole, payload)["v"])
    return schema, lambda payload: function(read(whole, payload))


def name_of(text: str) -> str | None:
    """Returns the full name of a schema by its text; None for an invalid text."""
    try:
        return full_name(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _read_carefully(whole: Any, payload: bytes) -> Any:
    """Reads values that may be nested without limit, a level per byte.

    The library's fast reader recurses on the C stack, which overflows at some thousand levels and ends the process;
    its Python reader raises RecursionError.
    """
    if len(payload) <= MAX_LEVELS:
        return _read(whole, payload)
    stream = io.BytesIO(payload)
    stream.seek(HEADER_BYTES)
    return _read_py.schemaless_reader(stream, whole, None, return_named_type=True)


def _read(whole: Any, payload: bytes) -> Any:
    stream = io.BytesIO(payload)
    stream.seek(HEADER_BYTES)
    try:
        return schemaless_reader(stream, whole, None, return_named_type=True)
    except UnicodeDecodeError:  # Java shows invalid UTF-8 as U+FFFD
        stream.seek(HEADER_BYTES)
        return schemaless_reader(stream, whole, None, return_named_type=True, handle_unicode_errors="replace")


def _plain_bytes(parsed: Parsed) -> bool:
    node = parsed.resolved(parsed.schema)
    return isinstance(node, Mapping) and node["type"] == "bytes"


_ANYTHING = parse(json_text(anything()), {}).schema


def _is_anything(parsed: Parsed) -> bool:
    schema = parsed.schema
    return isinstance(schema, Mapping) and schema.get("name") == ANYTHING and schema == _ANYTHING
