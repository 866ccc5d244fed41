"""A schema registry as converters use it: schemas and ids, errors, and the header of payloads.

The client is elsewhere (keelman.engine.records.registry_http); code that makes converters hands them an `OpenRegistry`.
The wire format is Confluent's: a zero, the schema's id in four bytes (big-endian), then the value as the schema's kind
has it. https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
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
    """Kinds of schemas under the registry's names."""

    AVRO = "AVRO"
    PROTOBUF = "PROTOBUF"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another one needs: the name under which that one speaks of it, and where it is registered."""

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
    """The registry does not answer, or says that it cannot now. Asking again may help."""

    tolerable = False


class RegistryRefused(ConnectError):
    """The registry does not let us in (401, 403), or what answers is none."""

    tolerable = False


class RegistryError(DataError):
    """The registry's no to a schema, a subject or an id; `code` is its own (40401, 40403, 409, 42201 ...)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Registry(Protocol):
    """One schema registry, for any thread; shared by all tasks of a process.

    What was found once is answered from memory, also while the registry is away. All methods raise RegistryUnavailable
    when it does not answer in time, RegistryRefused and RegistryError.
    """

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """Registers the schema, unless it is there, and returns its id. INCOMPATIBLE with older versions: code 409."""

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        """The same schema as it is registered in the subject; code SUBJECT_NOT_FOUND or SCHEMA_NOT_FOUND if not."""

    def latest(self, subject: str, seconds: float) -> Registered:
        """The subject's newest version, or what was that less than so many seconds ago."""

    def schema(self, schema_id: int) -> SchemaText:
        """The schema with an id; code SCHEMA_NOT_FOUND for none."""

    def referenced(self, reference: Reference) -> SchemaText:
        """What a reference stands for."""

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        """Whether the schema goes with this version ("latest" or a number) of the subject, by the subject's rule."""


OpenRegistry = Callable[[Mapping[str, str]], Registry]
"""Gives the registry that a converter's configuration (without the prefix of its role) names: the same for the same.
Opens no connection yet. Raises ConfigValueError."""


def closure(registry: Registry, schema: SchemaText) -> dict[str, SchemaText]:
    """All that the schema refers to, directly or not, by the names of the references; what others need comes first.

    Raises what the registry raises.
    """
    found: dict[str, SchemaText] = {}

    def visit(one: SchemaText, above: tuple[Reference, ...]) -> None:
        for reference in one.references:
            if reference.name in found or reference in above:
                continue
            inner = registry.referenced(reference)
            visit(inner, (*above, reference))
            found[reference.name] = inner

    visit(schema, ())
    return found


def header(schema_id: int) -> bytes:
    """What stands before a value that was written with this schema."""
    return _HEADER.pack(0, schema_id)


def schema_id(payload: bytes) -> int:
    """The id of the schema with which a payload was written. Raises DataError."""
    if len(payload) < HEADER_BYTES:
        raise DataError(f"{len(payload)} bytes are too few: a zero and the schema's id in four bytes must come first")
    magic, found = _HEADER.unpack_from(payload)
    if magic:
        raise DataError(f"Unknown magic byte! It is {magic}, not 0")
    return int(found)
