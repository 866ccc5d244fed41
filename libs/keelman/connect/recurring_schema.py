"""Represents a schema within itself, as registries have them for trees and lists."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.connect.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recurring(Schema):
    """A struct's schema nested in itself: the schema that it represents is set once it is known.

    Two are equal when their field names and all attributes but the fields are equal: comparing fields would not end.
    """

    def close(self, schema: Schema) -> None:
        """Makes it represent a schema, whose fields it has from now on. Called once, by the code that created it."""
        for attribute in ("fields", "name", "version"):
            object.__setattr__(self, attribute, getattr(schema, attribute))

    def _known_by(self) -> tuple[object, ...]:
        names = tuple(field.name for field in self.fields)
        return self.type, self.optional, self.name, self.version, self.parameters, names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Recurring) and self._known_by() == other._known_by())

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"Recurring({self.name})"
