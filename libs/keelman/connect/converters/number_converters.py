"""Converters of single numbers and booleans, in the form of Kafka's own serializers: big-endian, of a fixed size."""

from __future__ import annotations

import struct
from abc import abstractmethod
from typing import Any, ClassVar

from keelman.connect.converters.converter import Converter
from keelman.connect.errors import DataError
from keelman.connect.java.numbers import INTEGERS, Float32, java_class
from keelman.connect.records import Column
from keelman.connect.schema import Schema, java_type

_PACKAGE = "org.apache.kafka.connect.converters."


class _SingleConverter(Converter):
    """Writes and reads values one by one, of one type only; null stays null."""

    type: ClassVar[str]

    def from_connect(self, column: Column) -> list[bytes | None]:
        """Returns payloads. Raises DataError for another type."""
        column = column.texts()
        return [self._packed(column.schema_of(n), value) for n, value in enumerate(column.values)]

    def to_connect(self, payloads: list[bytes | None]) -> Column:
        """Returns optional values. Raises DataError for payloads of another type."""
        return Column([None if p is None else self._unpacked(p) for p in payloads], Schema(self.type, optional=True))

    @abstractmethod
    def _packed(self, schema: Schema | None, value: Any) -> bytes | None:
        """Returns a payload."""

    @abstractmethod
    def _unpacked(self, payload: bytes) -> Any:
        """Returns a value."""


class _NumberConverter(_SingleConverter):
    """Converts numbers: big-endian, of a fixed size."""

    word: ClassVar[str]
    """The type's name in Connect's texts."""
    _form: ClassVar[struct.Struct]

    def _packed(self, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        class_name = class_of(schema, value)
        if class_name != java_class(self._made(0)):
            raise DataError(f"Failed to serialize to {self.word} (was class {class_name}): ")
        return self._form.pack(value)

    def _unpacked(self, payload: bytes) -> Any:
        if len(payload) != self._form.size:
            raise DataError(f"Failed to deserialize {self.word}: ")
        return self._made(self._form.unpack(payload)[0])

    @classmethod
    def _made(cls, value: Any) -> Any:
        if cls.type in INTEGERS:
            return INTEGERS[cls.type][0](value)
        return Float32(value) if cls.type == "float" else float(value)


def class_of(schema: Schema | None, value: Any) -> str:
    """Returns Java's class of a value; under a schema, whole numbers are of its type."""
    if schema is not None and schema.type in INTEGERS and isinstance(value, int):
        return java_class(INTEGERS[schema.type][0](value))
    if schema is not None and schema.type == "float" and isinstance(value, float):
        return java_class(Float32(value))
    return java_class(value)


class ShortConverter(_NumberConverter):
    """Two bytes."""

    name = _PACKAGE + "ShortConverter"
    word, type, _form = "short", "int16", struct.Struct(">h")


class IntegerConverter(_NumberConverter):
    """Four bytes."""

    name = _PACKAGE + "IntegerConverter"
    word, type, _form = "integer", "int32", struct.Struct(">i")


class LongConverter(_NumberConverter):
    """Eight bytes."""

    name = _PACKAGE + "LongConverter"
    word, type, _form = "long", "int64", struct.Struct(">q")


class FloatConverter(_NumberConverter):
    """Four bytes, IEEE 754."""

    name = _PACKAGE + "FloatConverter"
    word, type, _form = "float", "float", struct.Struct(">f")


class DoubleConverter(_NumberConverter):
    """Eight bytes, IEEE 754."""

    name = _PACKAGE + "DoubleConverter"
    word, type, _form = "double", "double", struct.Struct(">d")


class BooleanConverter(_SingleConverter):
    """One byte, 0 or 1."""

    name = _PACKAGE + "BooleanConverter"
    type = "boolean"

    def _packed(self, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type != "boolean":
            raise DataError(f"Invalid schema type for BooleanConverter: {java_type(schema)}")
        if value is None:
            return None
        if not isinstance(value, bool):
            class_name = java_class(value)
            raise DataError(f"BooleanConverter is not compatible with objects of type class {class_name}")
        return b"\x01" if value else b"\x00"

    def _unpacked(self, payload: bytes) -> bool:
        if payload not in (b"\x00", b"\x01"):
            raise DataError("Failed to deserialize boolean: ")
        return payload == b"\x01"
