"""A schema registry that is only read: what would be registered is noted, for previews."""

from __future__ import annotations

from keelman.connect.registry.interface import (
    INCOMPATIBLE,
    SCHEMA_NOT_FOUND,
    SUBJECT_NOT_FOUND,
    VERSION_NOT_FOUND,
    Reference,
    Registered,
    Registry,
    RegistryError,
    SchemaText,
)

UNKNOWN = (SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND)
NO_ID = 0
"""Stands in payloads for the id that a schema would get."""


class DryRegistry:
    """A Registry over another. `new_subjects` are those that would get a schema."""

    def __init__(self, inner: Registry, new_subjects: list[str]) -> None:
        self._inner = inner
        self.new_subjects = new_subjects

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """The id that the schema has, or NO_ID; raises as the registry would for one that does not fit."""
        try:
            return self._inner.lookup(subject, schema, normalize=normalize).id
        except RegistryError as error:
            if error.code not in UNKNOWN:
                raise
        try:
            fits = self._inner.compatible(subject, "latest", schema)
        except RegistryError as error:
            if error.code not in UNKNOWN:
                raise
            fits = True
        if not fits:
            text = f"The schema does not go with the newest version of subject {subject}; error code: {INCOMPATIBLE}"
            raise RegistryError(text, INCOMPATIBLE)
        if subject not in self.new_subjects:
            self.new_subjects.append(subject)
        return NO_ID

    def lookup(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> Registered:
        """As Registry says."""
        return self._inner.lookup(subject, schema, normalize=normalize)

    def latest(self, subject: str, seconds: float) -> Registered:
        """As Registry says."""
        return self._inner.latest(subject, seconds)

    def schema(self, schema_id: int) -> SchemaText:
        """As Registry says."""
        return self._inner.schema(schema_id)

    def referenced(self, reference: Reference) -> SchemaText:
        """As Registry says."""
        return self._inner.referenced(reference)

    def compatible(self, subject: str, version: str, schema: SchemaText) -> bool:
        """As Registry says."""
        return self._inner.compatible(subject, version, schema)
