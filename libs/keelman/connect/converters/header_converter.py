"""SimpleHeaderConverter: values as literal texts, and back by the form of the text."""

from __future__ import annotations

import base64
from typing import Any

from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.converters.converter import SIMPLE_HEADERS, Converter
from keelman.connect.converters.literals import parse_literal
from keelman.connect.converters.logical import iso_text
from keelman.connect.java.text import java_text, map_order, utf8_text
from keelman.connect.records import Column
from keelman.connect.schema import Schema, Struct
from keelman.connect.times import TIMES


class SimpleHeaderConverter(Converter):
    """Converts columns of one header's values."""

    name = SIMPLE_HEADERS
    reads_anything = True
    kinds = (PluginType.HEADER_CONVERTER,)

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns no keys."""
        return ConfigDef()

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns literals; null stays null; a string has no quotes, except in lists and maps."""
        return [
            None if v is None else literal(v, inner=False).encode("utf-8", "replace") for v in column.texts().values
        ]

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns values and never fails: a text that is no literal is a string."""
        values: list[Any] = []
        schemas: list[Schema | None] = []
        for payload in payloads:
            schema, value = (None, None) if payload is None else parse_literal(utf8_text(payload))
            values.append(value)
            schemas.append(schema)
        return Column(values, schemas=schemas)


def literal(value: Any, *, inner: bool = True) -> str:  # noqa: PLR0911  one line a type
    """Returns the text of a value."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if inner else value
    if isinstance(value, TIMES):
        return iso_text(value)
    if isinstance(value, bytes):
        text = base64.b64encode(value).decode()
        return f'"{text}"' if inner else text
    if isinstance(value, Struct):
        pairs = [(f.name, _or_default(f.schema, value.values.get(f.name))) for f in value.schema.fields]
        return "{" + ",".join(f'"{name}":{literal(item)}' for name, item in pairs) + "}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{literal(key)}:{literal(value[key])}" for key in map_order(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(literal, value)) + "]"
    return java_text(value)


def _or_default(schema: Schema, value: Any) -> Any:
    return schema.default if value is None else value
