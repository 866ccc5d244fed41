"""Schemas that hold themselves, as registries have them for trees and lists."""

from __future__ import annotations

from dataclasses import dataclass

from keelman.connect.schema import Field, Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recurring(Schema):
    """A struct's schema where it is met again within itself. Its fields are set once they are known, and it is told
    from others by all else: to go through its fields would not end."""

    def close(self, fields: tuple[Field, ...]) -> None:
        """Sets the fields: those of the schema that it stands for. Called once, by whoever made it."""
        object.__setattr__(self, "fields", fields)

    def _known_by(self) -> tuple[object, ...]:
        names = tuple(field.name for field in self.fields)
        return self.type, self.optional, self.name, self.version, self.parameters, names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Recurring) and self._known_by() == other._known_by())

    def __hash__(self) -> int:
        return hash((self.type, self.name))

    def __repr__(self) -> str:
        return f"Recurring({self.name})"
