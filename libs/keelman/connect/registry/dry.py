"""Has a preview read a schema registry and note what would be registered there, which nothing is."""

from __future__ import annotations

from keelman.connect.registry.interface import ABSENT, INCOMPATIBLE, Registry, RegistryError, SchemaText

NO_ID = 0
"""Stands in payloads for the id that a schema would get."""


class DryRegistry:
    """A Registry over another, which answers all that only reads. `new_subjects` are those that would get a schema."""

    def __init__(self, inner: Registry, new_subjects: list[str]) -> None:
        self.lookup, self.latest, self.compatible = inner.lookup, inner.latest, inner.compatible
        self.schema, self.referenced = inner.schema, inner.referenced
        self.new_subjects = new_subjects

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """The id that the schema has, or NO_ID; raises as the registry would for one that does not fit."""
        try:
            return self.lookup(subject, schema, normalize=normalize).id
        except RegistryError as error:
            if error.code not in ABSENT:
                raise
        try:
            fits = self.compatible(subject, "latest", schema)
        except RegistryError as error:
            if error.code not in ABSENT:
                raise
            fits = True
        if not fits:
            text = f"The schema does not go with the newest version of subject {subject}; error code: {INCOMPATIBLE}"
            raise RegistryError(text, INCOMPATIBLE)
        if subject not in self.new_subjects:
            self.new_subjects.append(subject)
        return NO_ID
