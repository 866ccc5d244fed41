"""Connect's schemas and structs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keelman.connect.errors import DataError

INTEGER_RANGES = {"int8": 1 << 7, "int16": 1 << 15, "int32": 1 << 31, "int64": 1 << 63}
TYPES = frozenset({*INTEGER_RANGES, "float", "double", "boolean", "bytes", "string", "array", "map", "struct"})


@dataclass(frozen=True, slots=True)
class Field:
    """One named member of a struct's schema."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Schema:  # noqa: PLW1641  the hash is the data class's own
    """The type of a value in Connect's data. `type` is one of TYPES, the names that JsonConverter writes."""

    type: str
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    default: Any = field(default=None, hash=False)
    key: Schema | None = None
    value: Schema | None = None
    fields: tuple[Field, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Compares identity first, since most compared schemas are the same object."""
        if self is other:
            return True
        if not isinstance(other, Schema) or type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Schema.__slots__)


@dataclass(slots=True)
class Struct:
    """A struct's schema and its values by field name; a missing name is null. Callers must not change it."""

    schema: Schema
    values: Mapping[str, Any]


STRING = Schema("string")
OPTIONAL_STRING = Schema("string", optional=True)
OPTIONAL_BYTES = Schema("bytes", optional=True)


def java_type(schema: Schema) -> str:
    """Returns the name of the schema's type as Connect's messages have it, e.g. FLOAT32."""
    return type_name(schema.type)


def type_name(kind: str) -> str:
    """Returns the name of one of TYPES as Connect's messages have it."""
    return {"float": "FLOAT32", "double": "FLOAT64"}.get(kind, kind.upper())


def checked(schema: Schema, value: object) -> object:
    """Returns the value. Raises DataError if it does not fit the schema; members of containers are not checked."""
    if value is None:
        if schema.optional:
            return None
        raise DataError(f"Invalid value: null used for required schema: schema type: {schema.type.upper()}")
    kind = schema.type
    if kind in INTEGER_RANGES:
        bound = INTEGER_RANGES[kind]
        fits = isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
    else:
        fits = isinstance(value, _PYTHON[kind])
    if not fits:
        raise DataError(f"Invalid Python object for schema type {kind.upper()}: {type(value).__name__}")
    return value


_PYTHON: dict[str, tuple[type, ...]] = {
    "float": (float,),
    "double": (float,),
    "boolean": (bool,),
    "bytes": (bytes, bytearray, memoryview),
    "string": (str,),
    "array": (list, tuple),
    "map": (dict,),
    "struct": (Struct,),
}
