"""JsonSchemaConverter: writes and reads JSON in Confluent's wire format, with JSON Schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type, one_of_any_case
from keelman.connect.converters.registry_converter import RegistryConverter, keep, kept
from keelman.connect.errors import DataError
from keelman.connect.json_schema.document import SchemaDocument, document
from keelman.connect.json_schema.read_schema import read_schema
from keelman.connect.json_schema.reading import ValueReader
from keelman.connect.json_schema.write_schema import JsonSchemaOptions, write_schema
from keelman.connect.json_schema.writing import ValueWriter
from keelman.connect.records import Column
from keelman.connect.registry.interface import HEADER_BYTES, SchemaKind, SchemaText, header, schema_id
from keelman.connect.schema import Schema

_Check = Callable[[Any], None]
FAIL_INVALID = "json.fail.invalid.schema"


class JsonSchemaConverter(RegistryConverter):
    """Writes any value with a schema, reads any JSON; the payload is the header and the JSON as text."""

    name = "io.confluent.connect.json.JsonSchemaConverter"
    kind = SchemaKind.JSON

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the registry's keys and those of Confluent's mapping to JSON Schema."""
        flag, medium, low = Type.BOOLEAN, Importance.MEDIUM, Importance.LOW
        more = "Objects may have other properties than those of the schema."
        missing = "Properties that need not be there may be null."
        check = "Check each value against the schema, on writing and on reading."
        form = one_of_any_case("BASE64", "NUMERIC")
        return super().config_def() + ConfigDef(
            ConfigKey("object.additional.properties", flag, True, medium, more),
            ConfigKey("use.optional.for.nonrequired", flag, False, medium, missing),
            ConfigKey("decimal.format", Type.STRING, "BASE64", low, "How decimals are written.", form),
            ConfigKey(FAIL_INVALID, flag, False, medium, check),
        )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._options = JsonSchemaOptions.of(self.config)
        self._writers: dict[Schema, tuple[SchemaText, str | None, ValueWriter]] = {}
        self._documents: dict[SchemaText, tuple[SchemaDocument, _Check | None]] = {}
        self.begin_topic()

    def begin_topic(self) -> None:
        """Clears the readers: the versions of schemas are those of a topic's subject."""
        self._readers: dict[bytes, tuple[ValueReader, _Check | None]] = {}

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns payloads, each with its schema's id; a null is a null record if its schema does not allow null.

        Raises DataError, also for a value without a schema.
        """
        column = column.texts()
        writers: dict[int, tuple[bytes, ValueWriter, _Check | None]] = {}
        payloads: list[bytes | None] = []
        for index, value in enumerate(column.values):
            schema = column.schema_of(index)
            if schema is None and value is None:
                payloads.append(None)
                continue
            entry = writers.get(id(schema))
            if entry is None:
                entry = writers[id(schema)] = self._writer(schema)
            prefix, writer, check = entry
            payload = writer.write(value)
            if payload is not None and check is not None:
                check(orjson.loads(payload))
            payloads.append(None if payload is None else prefix + payload)
        return payloads

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns the values of the JSON payloads, each with the schema of its id. Raises DataError."""
        values: list[Any] = []
        schemas: list[Schema | None] = []
        readers = self._readers
        for payload in payloads:
            if payload is None:
                values.append(None)
                schemas.append(None)
                continue
            prefix = payload[:HEADER_BYTES]
            entry = readers.get(prefix)
            if entry is None:
                entry = self._reader(prefix)
            reader, check = entry
            tree = reader.parse(payload[HEADER_BYTES:])
            if check is not None:
                check(tree)
            values.append(reader.value(tree))
            schemas.append(reader.schema)
        return Column.of_each(values, schemas)

    def _writer(self, schema: Schema | None) -> tuple[bytes, ValueWriter, _Check | None]:
        if schema is None:
            raise DataError("JsonSchemaConverter writes only values with a schema, and this one has none")
        text_of, name, writer = kept(self._writers, self._most, schema, lambda: self._made(schema))
        number, to_write = self.id_to_write(text_of, name)
        return header(number), writer, self._document(to_write)[1] if self.config[FAIL_INVALID] else None

    def _made(self, schema: Schema) -> tuple[SchemaText, str | None, ValueWriter]:
        text = write_schema(schema, self._options, lambda part, value: ValueWriter(part, self._options).tree(value))
        title = orjson.loads(text).get("title")
        return SchemaText(SchemaKind.JSON, text), title, ValueWriter(schema, self._options)

    def _reader(self, prefix: bytes) -> tuple[ValueReader, _Check | None]:
        number = schema_id(prefix)
        text = self.schema_of(number)
        try:
            schema_document, check = self._document(text)
            title = schema_document.tree.get("title") if isinstance(schema_document.tree, dict) else None
            version = self.version(text, title)
            schema = read_schema(schema_document, self._options, self._default, version)
        except DataError as error:
            raise DataError(f"Schema {number}: {error}") from None
        return keep(self._readers, self._most, prefix, (ValueReader(schema, self._options), check))

    def _default(self, schema: Schema, tree: Any) -> Any:
        return ValueReader(schema, self._options).value(tree)

    def _document(self, text: SchemaText) -> tuple[SchemaDocument, _Check | None]:
        def make() -> tuple[SchemaDocument, _Check | None]:
            schema_document = document(
                text.text, {name: schema_text.text for name, schema_text in self.referenced(text).items()}
            )
            return schema_document, _check(schema_document) if self.config[FAIL_INVALID] else None

        return kept(self._documents, self._most, text, make)


def _check(schema_document: SchemaDocument) -> _Check:
    validate = schema_document.validator().validate

    def check(tree: Any) -> None:
        try:
            validate(tree)
        except (ValueError, RecursionError) as error:
            place = "/".join(map(str, getattr(error, "instance_path", ())))
            message = getattr(error, "message", None) or str(error)
            raise DataError(f"The JSON does not match its schema at /{place}: {message[:500]}") from None

    return check
