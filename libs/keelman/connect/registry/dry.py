"""Lets a preview read a schema registry and note the schemas that would be registered there; registers nothing."""

from __future__ import annotations

from keelman.connect.registry.interface import ABSENT, INCOMPATIBLE, Registry, RegistryError, SchemaText

NO_ID = 0
"""Used in payloads for the id that a new schema would get."""


class DryRegistry:
    """A Registry over another one, which answers all reads. `new_subjects` are those that would get a schema."""

    def __init__(self, inner: Registry, new_subjects: list[str]) -> None:
        self.lookup, self.latest, self.compatible = inner.lookup, inner.latest, inner.compatible
        self.schema, self.referenced = inner.schema, inner.referenced
        self.new_subjects = new_subjects

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        """Returns the id of the schema, or NO_ID; raises the registry's error for an incompatible schema."""
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
