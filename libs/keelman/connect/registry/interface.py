"""A schema registry as converters use it: schemas and ids, errors, and the header of payloads.

The client is in keelman.engine.records.registry_http; code that creates converters passes them an `OpenRegistry`.
The wire format is Confluent's: a zero, the schema's id in four bytes (big-endian), then the value in the format of its
kind. https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from keelman.connect.errors import ConnectError, DataError, RetriableConnectError

SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND = 40401, 40402, 40403
ABSENT = (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND)
INCOMPATIBLE = 409
HEADER_BYTES = 5
_HEADER = struct.Struct(">BI")


class SchemaKind(StrEnum):
    """The kinds of schemas by the registry's names."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one needs: its name in the other schema, and its place in the registry."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as the registry keeps it."""

    kind: SchemaKind
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema with its id, and its version in a subject."""

    schema: SchemaText
    id: int
    subject: str
    version: int


class RegistryUnavailable(RetriableConnectError):
    """The registry does not answer, or reports that it cannot now. A retry may help."""

    tolerable = False


class RegistryRefused(ConnectError):
    """The registry denies access (401, 403), or the server that answers is no registry."""

    tolerable = False


class RegistryError(DataError):
    """The registry's refusal of a schema, a subject or an id; `code` is its own (40401, 40403, 409, 42201 ...)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Registry(Protocol):
    """One schema registry, for any thread; shared by all tasks of a process.

    Earlier results are answered from memory, also while the registry is away. All methods raise RegistryUnavailable
    when it does not answer in time, RegistryRefused and RegistryError.
    """

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """Registers the schema if it is new, and returns its id. INCOMPATIBLE with older versions: code 409."""

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        """Returns the schema as registered in the subject; code SUBJECT_NOT_FOUND or SCHEMA_NOT_FOUND if not."""

    def latest(self, subject: str, seconds: float) -> Registered:
        """Returns the subject's newest version, or the newest as of less than `seconds` seconds ago."""

    def schema(self, schema_id: int) -> SchemaText:
        """Returns the schema with an id; code SCHEMA_NOT_FOUND for none."""

    def referenced(self, reference: Reference) -> SchemaText:
        """Returns the schema of a reference."""

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        """Whether the schema is compatible with this version ("latest" or a number), by the subject's rule."""


OpenRegistry = Callable[[Mapping[str, str]], Registry]
"""Returns the registry of a converter's configuration (without its role's prefix): the same registry for the same
configuration. Opens no connection yet. Raises ConfigValueError."""


def closure(registry: Registry, schema: SchemaText) -> dict[str, SchemaText]:
    """Returns all schemas that the schema refers to, directly or not, by reference name, in order of use.

    Raises the registry's errors.
    """
    texts: dict[str, SchemaText] = {}

    def visit(schema_text: SchemaText, above: tuple[Reference, ...]) -> None:
        for reference in schema_text.references:
            if reference.name in texts or reference in above:
                continue
            inner = registry.referenced(reference)
            visit(inner, (*above, reference))
            texts[reference.name] = inner

    visit(schema, ())
    return texts


def header(schema_id: int) -> bytes:
    """Returns the header of a value that was written with this schema."""
    return _HEADER.pack(0, schema_id)


def schema_id(payload: bytes) -> int:
    """Returns the id of the schema with which a payload was written. Raises DataError."""
    if len(payload) < HEADER_BYTES:
        raise DataError(f"{len(payload)} bytes are too few: a zero and the schema's id in four bytes must come first")
    magic, identifier = _HEADER.unpack_from(payload)
    if magic:
        raise DataError(f"Unknown magic byte! It is {magic}, not 0")
    return int(identifier)
