"""JsonConverter: JSON with or without Connect's schema envelope, in Connect's exact form."""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from keelman.connect import converter_keys
from keelman.connect.columns import StructColumn, json_payloads
from keelman.connect.config_def import ConfigDef
from keelman.connect.converters import Converter
from keelman.connect.errors import DataError
from keelman.connect.java import json_text
from keelman.connect.json_data import Plain, cut_numbers, has_decimals, parse_schema, read, schema_json
from keelman.connect.json_quick import quick_json
from keelman.connect.records import Column
from keelman.connect.schema import Schema

_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_UNREADABLE = "Converting byte[] to Kafka Connect data failed due to serialization error: "
_LONG = re.compile(rb"\d{19}")
_ZERO = re.compile(r"0\d")
_ZEROS = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\d.eE+])(-?)0+(?=\d)')


class JsonConverter(Converter):
    """Reads and writes JSON; `schemas.enable` (default true) wraps each value with its schema."""

    name = "org.apache.kafka.connect.json.JsonConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`schemas.enable`, `schemas.cache.size`, `decimal.format`, `replace.null.with.default`."""
        return converter_keys.json_keys()

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._schemas: bool = self.config["schemas.enable"]
        self._defaults: bool = self.config["replace.null.with.default"]
        self._plain = Plain(numeric=self.config["decimal.format"].upper() == "NUMERIC", defaults=self._defaults)
        self._texts: dict[Schema, str] = {}
        self._parsed: dict[bytes, tuple[Schema | None, bool]] = {}  # and whether it has decimals

    def from_connect(self, column: Column) -> list[bytes | None]:
        """JSON in UTF-8; a null without a schema is a null record."""
        column = column.texts()
        if column.schemas is None:
            schema = column.schema
            return [self._write(schema, value) for value in column.values]
        return [self._write(schema, value) for schema, value in zip(column.schemas, column.values, strict=True)]

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Values, each with its schema when schemas are enabled. Raises DataError for what is not such JSON."""
        if not self._schemas:
            return Column([None if p is None else _bare(p) for p in payloads])
        values, schemas = [], []
        for payload in payloads:
            schema, value = (None, None) if payload is None else self._open(payload)
            values.append(value)
            schemas.append(schema)
        return Column(values, schemas=schemas)

    def from_structs(self, structs: StructColumn, count: int) -> list[bytes] | None:
        """The same of a column of structs; None where each must be looked at."""
        if not self._schemas:
            return json_payloads(structs, count, self._plain, None)
        return json_payloads(structs, count, self._plain, self._schema_text(structs.schema))

    def _write(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        if schema is None and not self._schemas:
            written = quick_json(value)
            if written is not None:
                return written
        payload = json_text(self._plain.tree(schema, value))
        if not self._schemas:
            return payload.encode()
        return f'{{"schema":{self._schema_text(schema)},"payload":{payload}}}'.encode()

    def _schema_text(self, schema: Schema | None) -> str:
        text = "null" if schema is None else self._texts.get(schema)
        if text is None:
            assert schema is not None
            text = json_text(schema_json(schema))
            if len(self._texts) >= self.config["schemas.cache.size"]:
                self._texts.clear()
            self._texts[schema] = text
        return text

    def _open(self, payload: bytes) -> tuple[Schema | None, Any]:
        tree = loads(payload)
        if not isinstance(tree, dict) or tree.keys() != {"schema", "payload"}:
            raise DataError(_ENVELOPE)
        raw = orjson.dumps(tree["schema"])
        if raw not in self._parsed:
            if len(self._parsed) >= self.config["schemas.cache.size"]:
                self._parsed.clear()
            schema = parse_schema(tree["schema"])
            self._parsed[raw] = schema, has_decimals(schema)
        schema, decimals = self._parsed[raw]
        if decimals:
            tree = json.loads(payload, parse_float=decimal.Decimal)  # 1.10 is not 1.1
        if schema is None:
            return None, cut_numbers(tree["payload"])
        return schema, read(schema, tree["payload"], defaults=self._defaults)


def _bare(payload: bytes) -> Any:
    tree = loads(payload)
    return cut_numbers(tree) if _LONG.search(payload) else tree


def loads(payload: bytes) -> Any:
    """The tree of a JSON text as Connect's parser takes it: nothing is null, zeros may lead, what follows does not
    count. Raises DataError."""
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        problem = str(error)
    try:
        text = payload.decode().lstrip(" \t\r\n")
        if not text:
            return None
        if _ZERO.search(text) is not None:
            text = _ZEROS.sub(lambda found: found[1] or found[2] or "", text)
        return json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise DataError(_UNREADABLE + problem) from None


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
