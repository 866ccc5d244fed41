"""Kinds of members of a request, and the checks of their values. The members of operations are in `members`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from keelman.gateway.managed_connect.errors import bad_member


@dataclass(frozen=True, slots=True)
class TextShape:
    """A text with a length between two bounds."""

    least: int = 0
    most: int = 65_536
    values: tuple[str, ...] = ()
    pattern: str = ""
    legal: str = ""

    def checked(self, member: str, value: Any) -> str:
        """Returns a legal value. Raises WireError."""
        if not isinstance(value, str):
            raise bad_member(member, "A text is expected.")
        if self.values and value not in self.values:
            raise bad_member(member, f"The value must be one of {', '.join(self.values)}.")
        if not self.least <= len(value) <= self.most:
            raise bad_member(member, f"The length must be between {self.least} and {self.most}; it is {len(value)}.")
        if "\0" in value:
            raise bad_member(member, "The text has a NUL character in it.")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise bad_member(member, self.legal)
        return value


@dataclass(frozen=True, slots=True)
class WholeShape:
    """A whole number."""

    least: int = -(1 << 31)
    most: int = (1 << 31) - 1
    values: tuple[int, ...] = ()

    def checked(self, member: str, value: Any) -> int:
        """Returns a legal value. Raises WireError."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise bad_member(member, "A whole number is expected.")
        if self.values and value not in self.values:
            raise bad_member(member, f"The value must be one of {', '.join(map(str, self.values))}; it is {value}.")
        if not self.least <= value <= self.most:
            raise bad_member(member, f"The value must be between {self.least} and {self.most}; it is {value}.")
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def checked(self, member: str, value: Any) -> bool:
        """Returns a legal value. Raises WireError."""
        if not isinstance(value, bool):
            raise bad_member(member, "true or false is expected.")
        return value


@dataclass(frozen=True, slots=True)
class Items:
    """A list with a length between two bounds."""

    item: Kind
    least: int = 0
    most: int = 1000

    def checked(self, member: str, value: Any) -> list[Any]:
        """Returns a legal value. Raises WireError."""
        if not isinstance(value, list):
            raise bad_member(member, "A list is expected.")
        if not self.least <= len(value) <= self.most:
            legal = f"exactly {self.least}" if self.least == self.most else f"{self.least} to {self.most}"
            raise bad_member(member, f"The list must have {legal} items; it has {len(value)}.")
        return [self.item.checked(f"{member}[{number}]", element) for number, element in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Entries:
    """A map of texts."""

    key: TextShape = TextShape(1, 1024)
    value: TextShape = TextShape()
    most: int = 2000

    def checked(self, member: str, value: Any) -> dict[str, str]:
        """Returns a legal value. Raises WireError."""
        if not isinstance(value, dict):
            raise bad_member(member, "A map of texts is expected.")
        if len(value) > self.most:
            raise bad_member(member, f"The map must have at most {self.most} entries; it has {len(value)}.")
        return {
            self.key.checked(f"{member}.key", key): self.value.checked(f"{member}.{key[:128]}", text)
            for key, text in value.items()
        }


@dataclass(frozen=True, slots=True)
class Block:
    """Named members; unknown ones are ignored, since new SDKs may send them. `one_of`: exactly one of these."""

    members: Mapping[str, Kind] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()

    def checked(self, member: str, value: Any) -> dict[str, Any]:
        """Returns a legal value, without nulls and unknown members. Raises WireError."""
        if not isinstance(value, dict):
            raise bad_member(member, "A JSON object is expected.")
        values = {name: value[name] for name in self.members if value.get(name) is not None}
        begins = f"{member}." if member else ""
        for name in self.required:
            if name not in values:
                raise bad_member(f"{begins}{name}", "The parameter is required.")
        if self.one_of and sum(name in values for name in self.one_of) != 1:
            raise bad_member(member, f"Exactly one of {', '.join(self.one_of)} must be given.")
        return {name: self.members[name].checked(f"{begins}{name}", value) for name, value in values.items()}


Kind = TextShape | WholeShape | Flag | Items | Entries | Block
