"""One setting of a kind of object: a SettingDef in Ohara's form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Type(StrEnum):
    """The type of a setting's value."""

    ARRAY = "ARRAY"
    BINDING_PORT = "BINDING_PORT"
    BOOLEAN = "BOOLEAN"
    CLASS = "CLASS"
    DOUBLE = "DOUBLE"
    DURATION = "DURATION"
    INT = "INT"
    LONG = "LONG"
    OBJECT_KEY = "OBJECT_KEY"
    OBJECT_KEYS = "OBJECT_KEYS"
    PASSWORD = "PASSWORD"
    PORT = "PORT"
    POSITIVE_DOUBLE = "POSITIVE_DOUBLE"
    POSITIVE_INT = "POSITIVE_INT"
    POSITIVE_LONG = "POSITIVE_LONG"
    POSITIVE_SHORT = "POSITIVE_SHORT"
    REMOTE_PORT = "REMOTE_PORT"
    SHORT = "SHORT"
    STRING = "STRING"
    TABLE = "TABLE"
    TAGS = "TAGS"


class Necessary(StrEnum):
    """Whether a request must have the setting."""

    REQUIRED = "REQUIRED"
    OPTIONAL = "OPTIONAL"
    RANDOM_DEFAULT = "RANDOM_DEFAULT"


class Permission(StrEnum):
    """When a request may set the setting."""

    READ_ONLY = "READ_ONLY"
    CREATE_ONLY = "CREATE_ONLY"
    EDITABLE = "EDITABLE"


INTEGERS = {
    Type.SHORT: (-(1 << 15), (1 << 15) - 1),
    Type.INT: (-(1 << 31), (1 << 31) - 1),
    Type.LONG: (-(1 << 63), (1 << 63) - 1),
    Type.POSITIVE_SHORT: (1, (1 << 15) - 1),
    Type.POSITIVE_INT: (1, (1 << 31) - 1),
    Type.POSITIVE_LONG: (1, (1 << 63) - 1),
    Type.PORT: (1, 65535),
    Type.BINDING_PORT: (1, 65535),
    Type.REMOTE_PORT: (1, 65535),
}
"""Whole numbers: the least and the greatest."""
EMPTY = {Type.ARRAY: list, Type.OBJECT_KEYS: list, Type.TABLE: list, Type.TAGS: dict}
"""The value of an optional setting that is not given and has no default."""


@dataclass(frozen=True, slots=True)
class SettingDef:
    """`default`: None for none; a RANDOM_DEFAULT is chosen for each object. `order` is the place in its table."""

    key: str
    type: Type
    documentation: str
    group: str = "core"
    necessary: Necessary = Necessary.OPTIONAL
    permission: Permission = Permission.EDITABLE
    default: Any = None
    reference: str = "NONE"
    regex: str | None = None
    deny: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()
    prefix: str | None = None
    internal: bool = False
    table_keys: tuple[dict[str, Any], ...] = ()
    order: int = 0
    display_name: str = ""

    @property
    def json(self) -> dict[str, Any]:
        """The form in answers of inspect, with nulls."""
        return {
            "key": self.key,
            "group": self.group,
            "displayName": self.display_name or self.key,
            "orderInGroup": self.order,
            "valueType": self.type.value,
            "necessary": self.necessary.value,
            "defaultValue": self.default,
            "documentation": self.documentation,
            "reference": self.reference,
            "regex": self.regex,
            "internal": self.internal,
            "permission": self.permission.value,
            "tableKeys": list(self.table_keys),
            "recommendedValues": list(self.recommended),
            "denyList": list(self.deny),
            "prefix": self.prefix,
        }


Definitions = tuple[SettingDef, ...]


def table(*settings: SettingDef) -> Definitions:
    """Returns settings in their order, each with its place in it."""
    return tuple(replace(setting, order=place) for place, setting in enumerate(settings))


def by_key(definitions: Iterable[SettingDef]) -> dict[str, SettingDef]:
    """Returns settings by their keys."""
    return {definition.key: definition for definition in definitions}
