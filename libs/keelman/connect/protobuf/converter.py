"""ProtobufConverter: writes and reads Protobuf in Confluent's wire format, with schemas in a registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keelman.connect.config.definition import ConfigDef, ConfigKey, Importance, Type
from keelman.connect.converters.registry_converter import RegistryConverter, keep, kept
from keelman.connect.errors import DataError
from keelman.connect.protobuf.write_schema import ProtobufOptions, write_schema
from keelman.connect.records import Column
from keelman.connect.registry.interface import HEADER_BYTES, SchemaKind, SchemaText, header, schema_id
from keelman.connect.schema import Schema

if TYPE_CHECKING:
    from keelman.connect.protobuf.compiler import CompiledSchema
    from keelman.connect.protobuf.reading import MessageReader
    from keelman.connect.protobuf.writing import MessageWriter

MAX_INDEXES = 100
_FLAGS = (
    ("enhanced.protobuf.schema.support", False, "Keep the package in the names of schemas."),
    ("scrub.invalid.names", False, "Replace what Protobuf does not take in names."),
    ("int.for.enums", False, "Read enums as numbers, not as their symbols."),
    (
        "optional.for.nullables",
        False,
        "Write fields that may be null as optional, and read only optional ones as such.",
    ),
    ("generate.struct.for.nulls", False, "Read an absent message as a struct with its defaults."),
    ("generate.index.for.unions", True, "Add its place to the name of the field that a oneof becomes."),
    ("flatten.unions", False, "Read the fields of a oneof as fields of the struct, not as a struct of their own."),
    ("optional.for.proto2", True, "Heed optional in proto2, too."),
    ("wrapper.for.nullables", False, "Write fields that may be null as wrappers such as google.protobuf.Int64Value."),
    ("wrapper.for.raw.primitives", True, "Read a record that is a wrapper as the value in it."),
)


class ProtobufConverter(RegistryConverter):
    """Writes structs and single values, reads any message; null stays null.

    After the header come the indexes of the schema's message: their number, then the indexes, all as zigzag
    varints, or a zero for the first message.
    https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
    """

    name = "io.confluent.connect.protobuf.ProtobufConverter"
    kind = SchemaKind.PROTOBUF

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the registry's keys and those of Confluent's mapping to Protobuf."""
        medium = Importance.MEDIUM
        flags = (ConfigKey(name, Type.BOOLEAN, default, medium, doc) for name, default, doc in _FLAGS)
        return super().config_def() + ConfigDef(*flags)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._options = ProtobufOptions.of(self.config)
        self._texts: dict[Schema, tuple[SchemaText, str]] = {}
        self._compiled: dict[SchemaText, CompiledSchema] = {}
        self._writers: dict[tuple[Schema, SchemaText], tuple[bytes, MessageWriter]] = {}
        self.begin_topic()

    def begin_topic(self) -> None:
        """Clears the readers: the versions of schemas are those of a topic's subject."""
        self._readers: dict[bytes, MessageReader] = {}

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns payloads, each with its schema's id. Raises DataError, also for a value without a schema."""
        column = column.texts()
        writers: dict[int, tuple[bytes, Callable[[Any], bytes]]] = {}
        payloads: list[bytes | None] = []
        for index, value in enumerate(column.values):
            if value is None:
                payloads.append(None)
                continue
            schema = column.schema_of(index)
            writer = writers.get(id(schema))
            if writer is None:
                writer = writers[id(schema)] = self._writer(schema)
            payloads.append(writer[0] + writer[1](value))
        return payloads

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns the values of messages, each with the schema of its message. Raises DataError."""
        values: list[Any] = []
        schemas: list[Schema | None] = []
        readers = self._readers
        for payload in payloads:
            if payload is None:
                values.append(None)
                schemas.append(None)
                continue
            end = HEADER_BYTES + 1 if payload[HEADER_BYTES : HEADER_BYTES + 1] == b"\0" else _indexes_end(payload)
            reader = readers.get(payload[:end])
            if reader is None:
                reader = self._reader(payload[:end])
            values.append(reader.read(payload[end:]))
            schemas.append(reader.schema)
        return Column.of_each(values, schemas)

    def _writer(self, schema: Schema | None) -> tuple[bytes, Callable[[Any], bytes]]:
        if schema is None:
            raise DataError("ProtobufConverter writes only values with a schema, and this one has none")
        text, name = kept(self._texts, self._most, schema, lambda: self._text(schema))
        number, to_write = self.id_to_write(text, name)
        indexes, writer = kept(
            self._writers, self._most, (schema, to_write), lambda: self._made(schema, to_write, name)
        )
        return header(number) + indexes, writer.write

    def _text(self, schema: Schema) -> tuple[SchemaText, str]:
        text, name = write_schema(schema, self._options)
        return SchemaText(SchemaKind.PROTOBUF, text), name

    def _made(self, schema: Schema, text: SchemaText, name: str) -> tuple[bytes, MessageWriter]:
        from keelman.connect.protobuf.writing import MessageWriter  # noqa: PLC0415  only those load it who use it

        whole = self._whole(text)
        message = whole.by_name(name)
        return written_indexes(whole.indexes(message)), MessageWriter(schema, message, self._options)

    def _reader(self, prefix: bytes) -> MessageReader:
        from keelman.connect.protobuf.reading import MessageReader  # noqa: PLC0415  only those load it who use it

        number, indexes = schema_id(prefix), read_indexes(prefix[HEADER_BYTES:])
        text = self.schema_of(number)
        try:
            message = self._whole(text).by_indexes(indexes)
        except DataError as error:
            raise DataError(f"Schema {number}: {error}") from None
        reader = MessageReader(message, self._options, self.version(text, message.full_name))
        return keep(self._readers, self._most, prefix, reader)

    def _whole(self, text: SchemaText) -> CompiledSchema:
        from keelman.connect.protobuf.compiler import compiled  # noqa: PLC0415  only those load it who use it

        def compile_it() -> CompiledSchema:
            return compiled(text.text, {name: schema_text.text for name, schema_text in self.referenced(text).items()})

        return kept(self._compiled, self._most, text, compile_it)


def written_indexes(indexes: Sequence[int]) -> bytes:
    """Encodes a message's indexes: zigzag varints of their number, and of each."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def read_indexes(data: bytes) -> list[int]:
    """Decodes the indexes of a message. Raises DataError if they are invalid."""
    numbers, place = [], 0
    while place < len(data):
        number, place = _read_varint(data, place)
        numbers.append(number)
    return numbers[1:] if len(numbers) > 1 else [0]


def _indexes_end(payload: bytes) -> int:
    schema_id(payload)
    count, place = _read_varint(payload, HEADER_BYTES)
    if not 0 <= count <= MAX_INDEXES:
        raise DataError(f"The payload says that {count} message indexes follow")
    for _ in range(count):
        _, place = _read_varint(payload, place)
    return place


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if place >= len(data):
            raise DataError("The payload ends within its message indexes")
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place
    raise DataError("A message index of the payload has more than five bytes")
