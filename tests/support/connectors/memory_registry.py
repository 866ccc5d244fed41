"""A schema registry in memory, for converters alone, and their values; the real one is in tests/component."""

from __future__ import annotations

from typing import Any, TypeVar

from keelman.connect.converters.registry_converter import RegistryConverter
from keelman.connect.records import Column
from keelman.connect.registry.interface import SCHEMA_NOT_FOUND, Reference, Registered, RegistryError, SchemaText
from keelman.connect.schema import Field, Schema, Struct

C = TypeVar("C", bound=RegistryConverter)


class MemoryRegistry:
    """Stores any schema that is registered; `versions` tells whether versions can be looked up."""

    def __init__(self, *, versions: bool = True) -> None:
        self.versions = versions
        self.schemas: list[SchemaText] = []
        self.subjects: dict[str, list[int]] = {}

    def converter(self, kind: type[C], topic: str = "t", role: str = "value", **config: str) -> C:
        """A converter for a topic with this registry."""
        new_kind = kind({"schema.registry.url": "http://127.0.0.1:1", "converter.type": role, **config})
        new_kind.bind(lambda _config: self)
        return new_kind.of_topic(topic)

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        for version, number in enumerate(self.subjects.get(subject, ()), 1):
            if self.versions and self.schemas[number - 1] == schema:
                return Registered(schema, number, subject, version)
        raise RegistryError(f"no such schema in {subject}", SCHEMA_NOT_FOUND)

    def latest(self, subject: str, seconds: float) -> Registered:
        number = self.subjects[subject][-1]
        return Registered(self.schemas[number - 1], number, subject, len(self.subjects[subject]))

    def schema(self, schema_id: int) -> SchemaText:
        if not 0 < schema_id <= len(self.schemas):
            raise RegistryError(f"no schema {schema_id}", SCHEMA_NOT_FOUND)
        return self.schemas[schema_id - 1]

    def referenced(self, reference: Reference) -> SchemaText:
        return self.schemas[self.subjects[reference.subject][reference.version - 1] - 1]

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        return True


def struct(_name: str | None = None, **fields: Schema) -> Schema:
    return Schema("struct", name=_name, fields=tuple(Field(name, schema) for name, schema in fields.items()))


def mapping(key: Schema, value: Schema) -> Schema:
    return Schema("map", key=key, value=value)


def plain(value: Any) -> Any:
    """Structs as dictionaries."""
    if isinstance(value, Struct):
        return {name: plain(value) for name, value in value.values.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(value) for key, value in value.items()} if isinstance(value, dict) else value


def write_with(
    kind: type[RegistryConverter], schema: Schema | None, value: Any, **config: str
) -> tuple[MemoryRegistry, bytes | None]:
    """A new registry, and the payload that a converter writes of a value with it."""
    registry = MemoryRegistry()
    (payload,) = registry.converter(kind, **config).from_connect(Column([value], schema))
    return registry, payload


def read_with(
    kind: type[RegistryConverter], registry: MemoryRegistry, payload: bytes, **config: str
) -> tuple[Schema | None, Any]:
    """The value that a converter with that registry reads from a payload."""
    column = registry.converter(kind, **config).to_connect([payload])
    return column.schema_of(0), plain(column.values[0])
