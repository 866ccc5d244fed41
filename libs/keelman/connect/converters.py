"""Converters between Connect's data and bytes, a column at a time; under Connect's class names and keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from keelman.connect import converter_keys
from keelman.connect.config_def import ConfigDef
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java import java_text
from keelman.connect.java_numbers import java_class
from keelman.connect.records import Column
from keelman.connect.schema import OPTIONAL_BYTES, OPTIONAL_STRING, java_type

if TYPE_CHECKING:
    from keelman.connect.columns import StructColumn

Role = Literal["key", "value"]


class Converter(ABC):
    """Turns columns into payloads and back. One per role and copy run; keeps no state between batches but caches."""

    names: ClassVar[tuple[str, ...]]

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The converter's keys, without the prefix of its role."""
        return converter_keys.common_keys()

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` has the keys without prefix. Raises ConfigValueError."""
        self.config = self.config_def().parse({converter_keys.ROLE: "value", **config})

    @abstractmethod
    def from_connect(self, column: Column) -> list[bytes | None]:
        """Payloads for Kafka. Raises DataError."""

    def from_structs(self, structs: StructColumn, count: int) -> list[bytes] | None:
        """The same of `count` structs in columns; None where they must be made one by one."""
        return None

    @abstractmethod
    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """What payloads from Kafka hold. Raises DataError."""


_UTF8 = frozenset({"utf8", "utf-8"})


class StringConverter(Converter):
    """Writes toString(), reads optional strings. UTF-8 stays bytes on the way, so a copy of strings costs nothing."""

    names = ("org.apache.kafka.connect.storage.StringConverter", "StringConverter", "String")

    @classmethod
    def config_def(cls) -> ConfigDef:
        """`converter.encoding`, UTF-8 by default."""
        return converter_keys.string_keys()

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self.encoding: str = self.config["converter.encoding"]
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ConfigValueError("converter.encoding", self.encoding, "no such character set") from None
        self._utf8 = self.encoding.lower() in _UTF8

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Null stays null; anything else is its Java text."""
        if column.utf8 and self._utf8:
            return column.values
        texts = [None if v is None else java_text(v) for v in column.texts().values]
        if self.encoding.lower().replace("_", "-") == "utf-16":  # Java writes the upper byte first, and says so
            return [None if t is None else b"\xfe\xff" + t.encode("utf-16-be", "replace") for t in texts]
        return [None if t is None else t.encode(self.encoding, "replace") for t in texts]

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Optional strings; bytes that the character set does not know become U+FFFD, as in Java."""
        if self._utf8:
            return Column(payloads, OPTIONAL_STRING, utf8=True)
        texts = [None if p is None else p.decode(self.encoding, "replace") for p in payloads]
        return Column(texts, OPTIONAL_STRING)


class ByteArrayConverter(Converter):
    """Bytes through, unseen."""

    names = ("org.apache.kafka.connect.converters.ByteArrayConverter", "ByteArrayConverter", "ByteArray")

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Bytes or null; raises DataError for anything else."""
        if column.utf8 or (column.schema is not None and column.schema.type != "bytes"):
            kind = "STRING" if column.utf8 or column.schema is None else java_type(column.schema)
            raise DataError(f"Invalid schema type for ByteArrayConverter: {kind}")
        for index, value in enumerate(column.values):
            schema = column.schema_of(index)
            if schema is not None and schema.type != "bytes":
                raise DataError(f"Invalid schema type for ByteArrayConverter: {java_type(schema)}")
            if value is not None and not isinstance(value, bytes):
                found = java_class(value)
                raise DataError(f"ByteArrayConverter is not compatible with objects of type class {found}")
        return column.values

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Optional bytes."""
        return Column(payloads, OPTIONAL_BYTES)


def all_converters() -> tuple[type[Converter], ...]:
    """Every converter there is."""
    from keelman.connect import number_converters as numbers  # noqa: PLC0415  they stand on this module
    from keelman.connect.json_converter import JsonConverter  # noqa: PLC0415

    return (
        StringConverter,
        ByteArrayConverter,
        JsonConverter,
        numbers.BooleanConverter,
        numbers.ShortConverter,
        numbers.IntegerConverter,
        numbers.LongConverter,
        numbers.FloatConverter,
        numbers.DoubleConverter,
    )


def find_converter(key: str, class_name: str) -> type[Converter]:
    """The class by full, simple or short name. Raises ConfigValueError naming `key` with Connect's message."""
    for converter in all_converters():
        if class_name.strip() in converter.names:
            return converter
    raise ConfigValueError(key, class_name, f"Class {class_name} could not be found.")


def header_converter_for(connector: Mapping[str, str], worker: Mapping[str, str]) -> Converter:
    """The same for headers, of which SimpleHeaderConverter is the default."""
    from keelman.connect.header_converter import SimpleHeaderConverter  # noqa: PLC0415  it stands on this module

    key = "header.converter"
    source = connector if connector.get(key, "").strip() else worker
    name = source.get(key, "").strip() or SimpleHeaderConverter.names[0]
    prefix = f"{key}."
    config = {name[len(prefix) :]: value for name, value in source.items() if name.startswith(prefix)}
    if name in SimpleHeaderConverter.names:
        return SimpleHeaderConverter(config)
    return find_converter(key, name)(config)


def converter_for(role: Role, connector: Mapping[str, str], worker: Mapping[str, str]) -> Converter:
    """The configured converter of a role: the connector's with its keys, else the worker's with the worker's keys.

    Raises ConfigValueError when neither names one, the class is unknown or one of its values is not legal.
    """
    key = f"{role}.converter"
    source = connector if connector.get(key, "").strip() else worker
    if not source.get(key, "").strip():
        whole = f'Missing required configuration "{key}" which has no default value.'
        raise ConfigValueError(key, None, whole=whole)
    prefix = f"{key}."
    config = {name[len(prefix) :]: value for name, value in source.items() if name.startswith(prefix)}
    try:
        return find_converter(key, source[key])(config)
    except ConfigValueError as error:
        if error.key == key:
            raise
        text = str(error).replace(f"configuration {error.key}", f"configuration {prefix}{error.key}", 1)
        raise ConfigValueError(prefix + error.key, error.value, whole=text) from None
