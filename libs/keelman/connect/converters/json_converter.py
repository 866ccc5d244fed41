"""JsonConverter: JSON with or without Connect's schema envelope, in Connect's exact form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from keelman.connect.batch_splitting import merged, places_of
from keelman.connect.columns import StructColumn
from keelman.connect.config import converter_keys
from keelman.connect.config.definition import ConfigDef
from keelman.connect.converters.converter import Converter
from keelman.connect.converters.json_columns import JsonColumns, read_all, read_structs
from keelman.connect.converters.json_data import (
    MISSING,
    CareError,
    Plain,
    cut_numbers,
    has_decimals,
    parse_schema,
    quick_json,
    schema_json,
)
from keelman.connect.converters.json_text import SPACES, loads, quick_trees
from keelman.connect.errors import ConfigValueError, DataError, SerializationError, in_one_line
from keelman.connect.java.text import json_text
from keelman.connect.records import Column
from keelman.connect.schema import Schema

_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields. '
    "If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_UNREADABLE_CONTENT = "Failed to parse schema in converter config due to serialization error: "
_BEHIND_SCHEMA = re.compile(rb',\s*"payload"\s*:\s*')


class JsonConverter(Converter):
    """Reads and writes JSON; `schemas.enable` (default true) wraps each value with its schema."""

    name = "org.apache.kafka.connect.json.JsonConverter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the keys `schemas.enable`, `schemas.cache.size`, `schema.content`, `decimal.format` and
        `replace.null.with.default`."""
        return converter_keys.json_keys(_legal_content)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._schemas: bool = self.config["schemas.enable"]
        self._defaults: bool = self.config["replace.null.with.default"]
        self._plain = Plain(numeric=self.config["decimal.format"].upper() == "NUMERIC", defaults=self._defaults)
        self._columns = JsonColumns(self._plain)
        self._content = schema_content(self.config["schema.content"])
        self._content_exact = has_decimals(self._content)
        self._texts: dict[Schema, str] = {}
        self._last: tuple[Schema | None, str] = (None, "null")
        self._parsed: dict[bytes, tuple[Schema | None, bool]] = {}  # and whether it has decimals
        self._begins: dict[bytes, Schema] = {}

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns JSON in UTF-8; a null without a schema is a null record."""
        column = column.texts()
        values, schemas = column.values, column.schemas
        if schemas is None:
            return self._all(column.schema, values)
        places = places_of(map(id, schemas))
        if len(places) * 4 > len(values) > 1:
            return [self._write(schema, value) for schema, value in zip(schemas, values, strict=True)]
        if len(places) == 1:
            return self._all(schemas[0], values)
        parts = [(at, self._all(schemas[at[0]], [values[place] for place in at])) for at in places.values()]
        return merged(parts, len(values))

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns values, each with its schema when schemas are enabled. Raises DataError for other payloads."""
        if not self._schemas:
            return Column(_bare_all(payloads))
        if self._content is not None:
            return self._under(self._content, payloads)
        alike = self._alike(payloads)
        if alike is not None:
            try:
                return Column(read_all(*alike, defaults=self._defaults), alike[0])
            except CareError:
                pass
        try:
            return self._opened(payloads, exact=False)
        except CareError:
            return self._opened(payloads, exact=True)

    def _opened(self, payloads: list[bytes | None], *, exact: bool) -> Column:
        """Reads any schemas. Raises DataError, and without `exact` CareError if fractions must be read exactly."""
        opened = [(None, None, False) if payload is None else self._open(payload, exact=exact) for payload in payloads]
        schemas = [schema for schema, _, _ in opened]
        values: list[Any] = [value for _, value, _ in opened]
        todo = places_of(id(schema) if unread else 0 for schema, _, unread in opened)
        todo.pop(0, None)
        for at in todo.values():
            schema = schemas[at[0]]
            assert schema is not None
            results = read_all(schema, [values[n] for n in at], defaults=self._defaults)
            for place, value in zip(at, results, strict=True):
                values[place] = value
        return Column(values, schemas=schemas)

    def to_columns(self, payloads: list[bytes | None]) -> Column | StructColumn:
        """Returns structs as columns if all payloads begin with the same schema."""
        if self._content is not None and self._schemas:
            alike = None if None in payloads else (self._content, self._trees(payloads))
        else:
            alike = self._alike(payloads) if self._schemas else None
        try:
            structs = None if alike is None else read_structs(*alike, defaults=self._defaults)
        except CareError:
            structs = None
        return self.to_connect(payloads) if structs is None else structs

    def from_structs(self, structs: StructColumn, count: int) -> list[bytes] | None:
        """Returns the payloads of a column of structs; None if each must be written alone."""
        begin, end = self._around(structs.schema)
        try:
            return self._columns.objects(structs, count, begin, end)
        except CareError:
            return None

    def _all(self, schema: Schema | None, values: list[Any]) -> list[bytes | None]:
        if schema is None and None in values:
            texts = iter(self._all(None, [value for value in values if value is not None]))
            return [None if value is None else next(texts) for value in values]
        try:
            return list(self._columns.texts(schema, values, *self._around(schema))) if values else []
        except CareError:
            return [self._write(schema, value) for value in values]

    def _around(self, schema: Schema | None) -> tuple[str, str]:
        return (f'{{"schema":{self._schema_text(schema)},"payload":', "}") if self._schemas else ("", "")

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
        if self._last[0] is schema:
            return self._last[1]
        text = "null" if schema is None else self._texts.get(schema)
        if text is None:
            assert schema is not None
            text = json_text(schema_json(schema))
            if len(self._texts) >= self.config["schemas.cache.size"]:
                self._texts.clear()
            self._texts[schema] = text
        self._last = schema, text
        return text

    def _alike(self, payloads: list[bytes | None]) -> tuple[Schema, list[Any]] | None:
        """Returns the schema that all begin with, if it is a known one, and the JSON after it."""
        begin = next((begin for begin in self._begins if payloads and (payloads[0] or b"").startswith(begin)), None)
        if begin is None:
            return None
        size, texts = len(begin), []
        for payload in payloads:
            if payload is None or not payload.startswith(begin) or not payload.endswith(b"}"):
                return None
            texts.append(payload[size:-1])
        trees = quick_trees(texts)
        return None if trees is None else (self._begins[begin], trees)

    def _under(self, schema: Schema, payloads: list[bytes | None]) -> Column:
        """Reads payloads with the configured schema; a null is a null without a schema. Raises DataError."""
        try:
            values = read_all(schema, self._trees(payloads), defaults=self._defaults)
        except CareError:
            values = read_all(schema, self._trees(payloads, exact=True), defaults=self._defaults)
        iterator = iter(values)
        read = [None if payload is None else next(iterator) for payload in payloads]
        return Column.of_each(read, [None if payload is None else schema for payload in payloads])

    def _trees(self, payloads: list[bytes | None], *, exact: bool = False) -> list[Any]:
        """Parses the payloads that are not null, which have the configured schema. Raises DataError."""
        there = [payload for payload in payloads if payload is not None]
        return [
            loads(payload, exact=exact or self._content_exact) if payload.strip(SPACES) else MISSING
            for payload in there
        ]

    def _open(self, payload: bytes, *, exact: bool) -> tuple[Schema | None, Any, bool]:
        """Returns the schema and the payload, and whether the payload has still to be read."""
        for begin, known_schema in () if exact else self._begins.items():
            if payload.startswith(begin) and payload.endswith(b"}"):
                trees = quick_trees([payload[len(begin) : -1]])
                if trees is None:
                    break
                return known_schema, trees[0], True
        tree = loads(payload)
        if not isinstance(tree, dict) or tree.keys() != {"schema", "payload"}:
            raise DataError(_ENVELOPE)
        raw = orjson.dumps(tree["schema"])
        if raw not in self._parsed:
            if len(self._parsed) >= self.config["schemas.cache.size"]:
                self._parsed.clear()
            schema = parse_schema(tree["schema"])
            if has_decimals(schema):  # all digits count in defaults, too
                schema = parse_schema(loads(payload, exact=True)["schema"])
            self._parsed[raw] = schema, has_decimals(schema)
        schema, decimals = self._parsed[raw]
        if decimals or (exact and schema is not None):
            tree = loads(payload, exact=True)  # 1.10 is not 1.1
        if schema is None:
            return None, cut_numbers(tree["payload"]), False
        if not decimals:
            self._learn(payload, tree["schema"], schema)
        return schema, tree["payload"], True

    def _learn(self, payload: bytes, tree: Any, schema: Schema) -> None:
        """Remembers how payloads with this schema begin: usually with the same text."""
        for match in _BEHIND_SCHEMA.finditer(payload):
            begin = payload[: match.end()]
            try:
                whole = orjson.loads(begin + b"null}")
            except orjson.JSONDecodeError:
                continue
            if whole == {"schema": tree, "payload": None}:
                if len(self._begins) >= _MAX_BEGINS:
                    self._begins.clear()
                self._begins[begin] = schema
            return


_MAX_BEGINS = 8


def schema_content(text: str | None) -> Schema | None:
    """Returns the schema of `schema.content`; None without one. Raises DataError."""
    if not (text or "").strip():
        return None
    data = (text or "").encode()
    try:
        schema = parse_schema(loads(data))
        return parse_schema(loads(data, exact=True)) if has_decimals(schema) else schema
    except DataError as error:
        if isinstance(error.__cause__, SerializationError):
            raise DataError(_UNREADABLE_CONTENT) from error.__cause__
        raise


def _legal_content(name: str, value: Any) -> None:
    try:
        schema_content(value)
    except DataError as error:
        raise ConfigValueError(
            name, value, f"{in_one_line(error)}; expected a schema as JsonConverter writes it"
        ) from None


def _bare_all(payloads: list[bytes | None]) -> list[Any]:
    trees = quick_trees(payloads)
    return (
        [None if payload is None else cut_numbers(loads(payload)) for payload in payloads] if trees is None else trees
    )
