"""AvroConverter: writes and reads Avro in Confluent's wire format, with schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from keelman.connect.avro.names import AvroOptions
from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.converters.registry_converter import RegistryConverter, keep, kept
from keelman.connect.errors import DataError
from keelman.connect.records import Column
from keelman.connect.registry.interface import SchemaKind, SchemaText, header, schema_id
from keelman.connect.schema import Schema

_LOW, _MEDIUM = Importance.LOW, Importance.MEDIUM
Write = tuple[bytes, Callable[[Any], Any]]
Read = tuple[Schema | None, Callable[[bytes], Any]]


class AvroConverter(RegistryConverter):
    """Writes and reads Avro; values without a schema become a record that can hold anything."""

    name = "io.confluent.connect.avro.AvroConverter"
    kind = SchemaKind.AVRO

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the registry's keys and `enhanced.avro.schema.support`, `scrub.invalid.names`, `connect.meta.data`,
        `discard.type.doc.default`, `allow.optional.map.keys`, `flatten.singleton.unions`."""
        flag = Type.BOOLEAN
        return super().config_def() + ConfigDef(
            ConfigKey("enhanced.avro.schema.support", flag, False, _MEDIUM, "Keep enums, and the packages of names."),
            ConfigKey("scrub.invalid.names", flag, False, _MEDIUM, "Make names legal that Avro does not take."),
            ConfigKey("connect.meta.data", flag, True, _LOW, "Keep in Avro's schema what only Connect knows of it."),
            ConfigKey("discard.type.doc.default", flag, False, _LOW, "Keep documents and defaults of fields only."),
            ConfigKey("allow.optional.map.keys", flag, False, _LOW, "Write maps with optional texts as keys as maps."),
            ConfigKey("flatten.singleton.unions", flag, True, _LOW, "Take a union of one member for that member."),
        )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._options = AvroOptions.of(self.config)
        self._texts: dict[Schema | None, tuple[SchemaText, str]] = {}
        self._functions: dict[tuple[Schema | None, SchemaText], Callable[[Any], Any]] = {}
        self.begin_topic()

    def begin_topic(self) -> None:
        """Clears the caches: ids to write with and versions of schemas read are those of a topic's subject."""
        self._writes: dict[Schema | None, Write] = {}
        self._reads: dict[int, Read] = {}

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns payloads; null stays null. Raises DataError, and Registry's errors."""
        column = column.texts()
        schemas, schema = column.schemas, column.schema
        payloads: list[bytes | None] = []
        last_schema: Schema | None = None
        function: Callable[[Any], Any] | None = None
        begin = b""
        with self._errors_named("serialize Avro data from"):
            for n, value in enumerate(column.values):
                if schemas is not None:
                    schema = schemas[n]
                if value is None:
                    _check_null(schema)
                    payloads.append(None)
                    continue
                if function is None or schema is not last_schema:
                    (begin, function), last_schema = self._write(schema), schema
                payloads.append(begin + function(value))
        return payloads

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns values, each with its schema; null for null. Raises DataError, and Registry's errors."""
        values: list[Any] = []
        schemas: list[Schema | None] = []
        with self._errors_named("deserialize data for", " to Avro"):
            for payload in payloads:
                if payload is None:
                    values.append(None)
                    schemas.append(None)
                    continue
                identifier = schema_id(payload)
                schema, function = self._reads.get(identifier) or self._read(identifier)
                values.append(function(payload))
                schemas.append(schema)
        return Column.of_each(values, schemas)

    @contextmanager
    def _errors_named(self, what: str, more: str = "") -> Iterator[None]:
        """Raises a DataError that names the failed operation, for values and payloads; Registry's errors pass."""
        from keelman.connect.avro.codec import FAULTS  # noqa: PLC0415  (memory for who writes Avro alone)

        try:
            yield
        except (DataError, *FAULTS) as error:
            said = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
            raise DataError(f"Failed to {what} topic {self.topic}{more}: {said}") from None

    def _write(self, schema: Schema | None) -> Write:
        writer = self._writes.get(schema)
        if writer is not None:
            return writer
        from keelman.connect.avro.codec import schema_text, write_bytes  # noqa: PLC0415  (the same)

        text, name = kept(self._texts, self._most, schema, lambda: schema_text(schema, self._options))
        number, avro = self.id_to_write(text, name)

        def make() -> Callable[[Any], Any]:
            references = {name: it.text for name, it in self.referenced(avro).items()}
            return write_bytes(schema, avro, references, self._options)

        write = header(number), kept(self._functions, self._most, (schema, avro), make)
        return keep(self._writes, self._most, schema, write) if self.keeps_ids else write

    def _read(self, number: int) -> Read:
        from keelman.connect.avro.codec import name_of, read_bytes  # noqa: PLC0415  (the same)

        avro = self.schema_of(number)
        references = {name: schema_text.text for name, schema_text in self.referenced(avro).items()}
        version = self.version(avro, name_of(avro.text))
        return keep(self._reads, self._most, number, read_bytes(avro, references, self._options, version))


def _check_null(schema: Schema | None) -> None:
    if schema is not None and not schema.optional:
        raise DataError("Found null value for non-optional schema")
