"""Rules that a value must fulfil, with Connect's own messages and its own descriptions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from keelman.connect.config.types import trim
from keelman.connect.errors import ConfigValueError
from keelman.connect.java.text import java_text

Validator = Callable[[str, Any], None]
"""A function of a key's name and its typed value, None for none; raises ConfigValueError."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A validator that can describe the legal values."""

    check: Validator
    words: str

    def __call__(self, name: str, value: Any) -> None:
        """Raises ConfigValueError."""
        self.check(name, value)

    def __str__(self) -> str:
        return self.words


def refuse(name: str, value: Any, reason: str) -> ConfigValueError:
    """Returns the error for a value, which the message shows as Java would."""
    return ConfigValueError(name, java_text(value), reason)


def at_least(least: float) -> Rule:
    """Requires a number no less than this."""
    return between(least, None)


def between(least: float | None, most: float | None) -> Rule:
    """Requires a number within these bounds, both included."""

    def check(name: str, value: Any) -> None:
        if value is None:
            raise refuse(name, value, "Value must be non-null")
        if least is not None and value < least:
            raise refuse(name, value, f"Value must be at least {java_text(least)}")
        if most is not None and value > most:
            raise refuse(name, value, f"Value must be no more than {java_text(most)}")

    bounds = ["..." if bound is None else java_text(bound) for bound in (least, most)]
    words = ",".join(bounds if None in (least, most) else (bounds[0], "...", bounds[1]))
    return Rule(check, f"[{words}]")


def one_of(*legal: str) -> Rule:
    """Requires one of these strings."""

    def check(name: str, value: Any) -> None:
        if value not in legal:
            raise refuse(name, value, f"String must be one of: {', '.join(legal)}")

    return Rule(check, f"[{', '.join(legal)}]")


def one_of_any_case(*legal: str) -> Rule:
    """Requires one of these strings, in upper or lower case."""

    def check(name: str, value: Any) -> None:
        if value is None or value.upper() not in {word.upper() for word in legal}:
            raise refuse(name, value, f"String must be one of (case insensitive): {', '.join(legal)}")

    return Rule(check, f"(case insensitive) [{', '.join(legal)}]")


def _non_empty(name: str, value: Any) -> None:
    if value is not None and not value:
        raise refuse(name, value, "String must be non-empty")


non_empty = Rule(_non_empty, "non-empty string")
"""Requires a string with at least one character."""


def _clean_name(name: str, value: Any) -> None:
    if value is None:
        return
    if not trim(value):
        raise refuse(name, value, "String may not be empty")
    bad = [ord(c) for c in value if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0]
    if bad:
        codes = ", ".join(map(str, bad))
        reason = f"String may not contain control sequences but had the following ASCII chars: {codes}"
        raise refuse(name, value, reason)


clean_name = Rule(_clean_name, "non-empty string without ISO control characters")
"""Requires a string that is not empty and has no control characters."""


def _non_null(name: str, value: Any) -> None:
    if value is None:
        raise refuse(name, value, "entry must be non null")


non_null = Rule(_non_null, "non-null string")
"""Requires a value."""


def unique(what: str) -> Rule:
    """Requires a list without duplicates; `what` describes it, e.g. `transformation aliases`."""

    def check(name: str, value: Sequence[str] | None) -> None:
        _non_null(name, value)
        if value is not None and len(set(value)) < len(value):
            raise refuse(name, value, "Duplicate alias provided.")

    return Rule(check, f"non-null string,unique {what}")


def names(name: str, value: Sequence[str] | None) -> None:
    """Requires a list, empty or not, without duplicates or empty names."""
    if value is None:
        raise ConfigValueError(name, value, whole=f"Configuration '{name}' values must not be null.")
    if len(set(value)) < len(value):
        raise ConfigValueError(name, value, whole=f"Configuration '{name}' values must not be duplicated.")
    if "" in value:
        raise ConfigValueError(name, value, whole=f"Configuration '{name}' values must not be empty.")


def all_of(*rules: Validator) -> Rule:
    """Requires each of these rules; the error is that of the first broken rule."""

    def check(name: str, value: Any) -> None:
        for rule in rules:
            rule(name, value)

    return Rule(check, ",".join(map(str, rules)))
