"""Types of configuration values: parsing of texts and formatting of values, trimmed and named as in Connect."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from keelman.connect.errors import ConfigValueError
from keelman.connect.java.text import double_text, java_text

ClassFinder = Callable[[str], str | None]
"""Returns the full name of a class by any of its names; None for an unknown name."""

_SPACES = "".join(map(chr, range(0x21)))  # the characters that Java's String.trim removes
_LIST_SPACES = " \t\n\x0b\f\r"  # those around a list's commas
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?)", re.ASCII)


class _Required:
    """The default of a key without a default."""


REQUIRED = _Required()


class Type(Enum):
    """Types of values, under Connect's names."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(Enum):
    """The importance of a key: how likely a user is to set it."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """The width of a form's field for a key."""

    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


@dataclass(frozen=True, slots=True)
class Password:
    """A value that is never shown."""

    value: str

    def __str__(self) -> str:
        return "[hidden]"

    def __repr__(self) -> str:
        return "[hidden]"


_BITS = {Type.INT: 32, Type.SHORT: 16, Type.LONG: 64}


def trim(text: str) -> str:
    """Returns the text without Java's white space at its ends: all characters up to the space."""
    return text.strip(_SPACES)


def parse_type(  # noqa: PLR0911  one line a type
    name: str, text: str | None, kind: Type, find: ClassFinder | None = None
) -> Any:
    """Parses a text as a value of a type: bool, str, int, float, list of str, Password; a class is its full name.

    Without `find` every class is assumed to exist. Raises ConfigValueError with Connect's text.
    """
    if text is None:
        return None
    trimmed = trim(text)
    if kind is Type.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise ConfigValueError(name, text, "Expected value to be either true or false")
        return trimmed.lower() == "true"
    if kind in _BITS:
        return _integer(name, text, trimmed, kind)
    if kind is Type.DOUBLE:
        return _double(name, text, trimmed)
    if kind is Type.LIST:
        return [part.strip(_LIST_SPACES) for part in trimmed.split(",")] if trimmed else []
    if kind is Type.CLASS:
        return _class(name, text, trimmed, find)
    return Password(trimmed) if kind is Type.PASSWORD else trimmed


def _integer(name: str, text: str, trimmed: str, kind: Type) -> int:
    digits = trimmed[1:] if trimmed[:1] in ("-", "+") else trimmed
    if digits.isdecimal() and len(digits) < 1000:  # Java, too, takes any script's digits
        value = int(trimmed)
        if -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1:
            return value
    raise ConfigValueError(name, text, f"Not a number of type {kind.value}")


def _double(name: str, text: str, trimmed: str) -> float:
    if not _DOUBLE.fullmatch(trimmed):
        raise ConfigValueError(name, text, "Not a number of type DOUBLE")
    return float(trimmed if trimmed.endswith(("NaN", "Infinity")) else trimmed.rstrip("fFdD"))


def _class(name: str, text: str, trimmed: str, find: ClassFinder | None) -> str:
    full_name = find(trimmed) if find is not None else trimmed
    if not full_name:
        raise ConfigValueError(name, text, f"Class {text} could not be found.")
    return full_name


def text_of(value: Any, kind: Type | None) -> str | None:
    """Returns a typed value in the form of Connect's REST API; None stays None."""
    if value is None:
        return None
    if kind is Type.LIST and isinstance(value, list | tuple):
        return ",".join(map(java_text, value))
    if kind is Type.DOUBLE and isinstance(value, int | float):
        return double_text(float(value))
    return str(value) if isinstance(value, Password) else java_text(value)
