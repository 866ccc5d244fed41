"""Converters between Connect's data and bytes, a column at a time; under Connect's class names and keys."""

from __future__ import annotations

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from keelman.connect.config import converter_keys
from keelman.connect.config.definition import ConfigDef
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.errors import ConfigValueError, DataError
from keelman.connect.java.numbers import java_class
from keelman.connect.java.text import java_text
from keelman.connect.records import Column
from keelman.connect.schema import OPTIONAL_BYTES, OPTIONAL_STRING, java_type

if TYPE_CHECKING:
    from keelman.connect.columns import StructColumn
    from keelman.connect.registry.interface import OpenRegistry

Role = Literal["key", "value", "header"]
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


class Converter(ABC):
    """Turns columns into payloads and back. One per role and copy run; its only state between batches are caches."""

    name: ClassVar[str]
    """The full name of Connect's class."""
    kinds: ClassVar[tuple[PluginType, ...]] = (PluginType.CONVERTER, PluginType.HEADER_CONVERTER)
    """The kinds of data that it converts, as in Connect."""
    by_topic: ClassVar[bool] = False
    """Whether payloads depend on the topic: then only a converter from `of_topic` converts."""
    reads_anything: ClassVar[bool] = False
    """Whether it accepts any bytes."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns the converter's keys, without the prefix of its role."""
        return converter_keys.common_keys()

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` has the keys without prefix. Raises ConfigValueError."""
        self.config = self.config_def().parse({converter_keys.ROLE: "value", **config})

    def bind(self, open_registry: OpenRegistry) -> None:  # noqa: B027  most have no use for it
        """Gives the converter access to a schema registry. Called once, before it converts."""

    def of_topic(self, topic: str) -> Self:
        """Returns the converter for a topic's records: itself, unless payloads depend on the topic."""
        return self

    @abstractmethod
    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns payloads for Kafka. Raises DataError."""

    def from_structs(self, structs: StructColumn, count: int) -> list[bytes] | None:
        """Returns payloads of `count` structs in columns; None if they must be made one by one."""
        return None

    @abstractmethod
    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns the values of payloads from Kafka. Raises DataError."""

    def to_columns(self, payloads: list[bytes | None]) -> Column | StructColumn:
        """Returns the values for a chain: in columns if all are structs of one schema and the converter supports it."""
        return self.to_connect(payloads)


_UTF8 = frozenset({"utf8", "utf-8"})
_PYTHONS_OWN = frozenset({"utf-7", "utf-8-sig", "idna", "punycode", "raw_unicode_escape", "unicode_escape"})
"""Python's names of character sets that Java does not know."""
_LONE = re.compile("[\ud800-\udfff]")
_MARKS = {
    "utf-16": ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le")),
    "utf-32": ((codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF32_LE, "utf-32-le")),
    "utf-32-be": ((codecs.BOM_UTF32_BE, "utf-32-be"),),
    "utf-32-le": ((codecs.BOM_UTF32_LE, "utf-32-le"),),
}
"""Character sets with a byte order mark; the first is the order without one."""


class StringConverter(Converter):
    """Writes toString(), reads optional strings. UTF-8 stays bytes on the way, so a copy of strings costs nothing."""

    name = "org.apache.kafka.connect.storage.StringConverter"
    reads_anything = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        """Returns `converter.encoding`, UTF-8 by default."""
        return converter_keys.string_keys()

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self.encoding: str = self.config["converter.encoding"]
        try:
            self._codec = codecs.lookup(self.encoding).name
            if self._codec in _PYTHONS_OWN:
                raise LookupError
            "".encode(self._codec)
        except LookupError:
            raise ConfigValueError("converter.encoding", self.encoding, "no such character set") from None
        self._utf8 = self.encoding.lower() in _UTF8

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns payloads; null stays null; any other value becomes its Java text."""
        if column.utf8 and self._utf8:
            return column.values
        return [None if v is None else self._encoded(java_text(v)) for v in column.texts().values]

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns optional strings; bytes invalid in the character set become U+FFFD, as in Java."""
        if self._utf8:
            return Column(payloads, OPTIONAL_STRING, utf8=True)
        texts = [None if p is None else self._decoded(p) for p in payloads]
        return Column(texts, OPTIONAL_STRING)

    def _encoded(self, text: str) -> bytes:
        """Encodes like Java: in UTF-16 and UTF-32 the upper byte comes first; only UTF-16 has a byte order mark."""
        if self._codec.startswith(("utf-16", "utf-32")):
            text = _LONE.sub("\ufffd", text)
        if self._codec == "utf-16":
            return codecs.BOM_UTF16_BE + text.encode("utf-16-be") if text else b""
        if self._codec == "utf-32":
            return text.encode("utf-32-be")
        return text.encode(self._codec, "replace")

    def _decoded(self, data: bytes) -> str:
        for mark, codec in _MARKS.get(self._codec, ()):
            if data.startswith(mark):
                return data[len(mark) :].decode(codec, "replace")
        return data.decode(_MARKS[self._codec][0][1] if self._codec in _MARKS else self._codec, "replace")


class ByteArrayConverter(Converter):
    """Passes bytes through unchanged."""

    name = "org.apache.kafka.connect.converters.ByteArrayConverter"
    reads_anything = True

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns bytes or null; raises DataError for anything else."""
        if column.utf8 or (column.schema is not None and column.schema.type != "bytes"):
            kind = "STRING" if column.utf8 or column.schema is None else java_type(column.schema)
            raise DataError(f"Invalid schema type for ByteArrayConverter: {kind}")
        for index, value in enumerate(column.values):
            schema = column.schema_of(index)
            if schema is not None and schema.type != "bytes":
                raise DataError(f"Invalid schema type for ByteArrayConverter: {java_type(schema)}")
            if value is not None and not isinstance(value, bytes):
                class_name = java_class(value)
                raise DataError(f"ByteArrayConverter is not compatible with objects of type class {class_name}")
        return column.values

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns optional bytes."""
        return Column(payloads, OPTIONAL_BYTES)
