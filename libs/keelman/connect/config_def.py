"""Definitions of configuration keys, and Connect's own texts for what is wrong. Unknown keys are accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from keelman.connect.errors import ConfigValueError

Validator = Callable[[str, Any], None]


class _Required:
    """The default of a key that has none."""


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
    """How likely a user is to set a key."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


_BITS = {Type.INT: 32, Type.SHORT: 16, Type.LONG: 64}


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key. `default` is already typed; REQUIRED means there is none. The validator raises ConfigValueError."""

    name: str
    type: Type
    default: Any
    importance: Importance
    doc: str
    validator: Validator | None = None

    def parse(self, config: Mapping[str, str]) -> Any:
        """The typed value. Raises ConfigValueError with Connect's text."""
        if self.name in config:
            value = parse_type(self.name, config[self.name], self.type)
        elif self.default is REQUIRED:
            text = f'Missing required configuration "{self.name}" which has no default value.'
            raise ConfigValueError(self.name, None, whole=text)
        else:
            value = self.default
        if self.validator is not None:
            self.validator(self.name, value)
        return value


class ConfigDef:
    """The keys that a connector, converter or the framework knows."""

    def __init__(self, *keys: ConfigKey) -> None:
        self.keys = {key.name: key for key in keys}

    def __add__(self, other: ConfigDef) -> ConfigDef:
        """Both sets of keys; the right one wins where a name is in both."""
        return ConfigDef(*{**self.keys, **other.keys}.values())

    def parse(self, config: Mapping[str, str]) -> dict[str, Any]:
        """Typed values of all known keys. Raises the first ConfigValueError."""
        return {name: key.parse(config) for name, key in self.keys.items()}

    def errors(self, config: Mapping[str, str]) -> list[ConfigValueError]:
        """What is wrong, in the order of the keys; at most one error a key."""
        found = []
        for key in self.keys.values():
            try:
                key.parse(config)
            except ConfigValueError as error:
                found.append(error)
        return found


def parse_type(name: str, text: str | None, kind: Type) -> Any:
    """A text as a value of a type, trimmed as Connect trims. Raises ConfigValueError."""
    if text is None or kind is Type.PASSWORD:
        return text
    trimmed = text.strip()
    value: Any = trimmed
    if kind is Type.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise ConfigValueError(name, trimmed, "Expected value to be either true or false")
        value = trimmed.lower() == "true"
    elif kind in _BITS:
        value = _integer(name, trimmed, kind)
    elif kind is Type.DOUBLE:
        try:
            value = float(trimmed)
        except ValueError:
            raise ConfigValueError(name, trimmed, "Not a number of type DOUBLE") from None
    elif kind is Type.LIST:
        value = [part.strip() for part in trimmed.split(",")] if trimmed else []
    return value


def _integer(name: str, text: str, kind: Type) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if digits.isascii() and digits.isdigit():
        value = int(text)
        if -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1:
            return value
    raise ConfigValueError(name, text, f"Not a number of type {kind.value}")


def at_least(least: int) -> Validator:
    """The number is no less than this."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise ConfigValueError(name, value, "Value must be non-null")
        if value < least:
            raise ConfigValueError(name, value, f"Value must be at least {least}")

    return check


def one_of(*legal: str) -> Validator:
    """The string is one of these."""

    def check(name: str, value: Any) -> None:
        if value not in legal:
            raise ConfigValueError(name, value, f"String must be one of: {', '.join(legal)}")

    return check


def one_of_any_case(*legal: str) -> Validator:
    """The string is one of these, in upper or lower case."""

    def check(name: str, value: Any) -> None:
        if value is None or value.upper() not in {word.upper() for word in legal}:
            raise ConfigValueError(name, value, f"String must be one of (case insensitive): {', '.join(legal)}")

    return check


def non_empty(name: str, value: Any) -> None:
    """The string has at least one character."""
    if value is not None and not value:
        raise ConfigValueError(name, value, "String must be non-empty")


def clean_name(name: str, value: Any) -> None:
    """The string is not empty and has no control characters."""
    if value is None:
        return
    if not value:
        raise ConfigValueError(name, value, "String may not be empty")
    bad = [ord(c) for c in value if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]
    if bad:
        codes = ", ".join(map(str, bad))
        why = f"String may not contain control sequences but had the following ASCII chars: {codes}"
        raise ConfigValueError(name, value, why)


def unique(kind: str) -> Validator:
    """The list names nothing twice."""

    def check(name: str, value: Sequence[str] | None) -> None:
        if value is None:
            raise ConfigValueError(name, value, "entry must be non null")
        if len(set(value)) < len(value):
            raise ConfigValueError(name, f"[{', '.join(value)}]", f"Duplicate {kind} provided.")

    return check
