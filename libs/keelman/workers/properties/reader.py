"""Reads typed values from properties and collects all errors for one message."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from keelman.connect.config.definition import ConfigKey, Type, parse_type
from keelman.connect.config.references import references
from keelman.connect.errors import ConfigValueError
from keelman.model.errors import InvalidArgument, Violation

T = TypeVar("T")
_NAMED = re.compile(r"([\w.-]+)(?:: | is missing)")


def setting(key: ConfigKey, *configs: Mapping[str, str]) -> Any:
    """Returns the typed value of the first configuration that sets the key, else its default. Raises
    InvalidArgument."""
    try:
        return key.among(*configs)
    except ConfigValueError as error:
        text = str(error)
        raise InvalidArgument(text, metadata={"field": key.name}, violations=[Violation(key.name, text)]) from None


class PropertyReader:
    """Each method returns the value, or its default if it is unset or illegal; `end` raises all errors.

    `written` are the same properties with references, which messages show in place of their values. `unknown` are keys
    whose values are known only elsewhere: they are not in `raw`, and not missing.
    """

    def __init__(
        self, raw: Mapping[str, str], written: Mapping[str, str] | None = None, unknown: Collection[str] = ()
    ) -> None:
        self.raw = raw
        self.unknown = frozenset(unknown)
        self._written = raw if written is None else written
        self._problems: list[Violation] = []

    @property
    def problems(self) -> tuple[Violation, ...]:
        """The noted errors."""
        return tuple(self._problems)

    def knows(self, *keys: str, under: str | tuple[str, ...] = ()) -> bool:
        """Returns whether the values of these keys, and of all keys that begin with `under`, are known here."""
        return not any(key in keys or key.startswith(under) for key in self.unknown)

    def number(self, key: str, default: int, least: int) -> int:
        """Returns a whole number."""
        text = self.raw.get(key, "")
        try:
            value: int = parse_type(key, text, Type.LONG) if text else default
        except ConfigValueError:
            value = least - 1
        if text and value < least:
            self.refuse(key, text, f"a whole number, at least {least}")
            return default
        return value

    def count(self, key: str, default: int) -> int:
        """Returns a count, or -1 for the brokers' default."""
        value = self.number(key, default, -1)
        if value == 0 and self.raw.get(key):
            self.refuse(key, self.raw[key], "a whole number, at least 1, or -1 for the brokers' default")
        return value

    def positive(self, key: str) -> float:
        """Returns a number greater than 0; 0 if it is unset."""
        text = self.raw.get(key, "")
        try:
            value = float(text or 0)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (text and value <= 0):
            self.refuse(key, text, "a number greater than 0, e.g. 1.5")
            return 0.0
        return value

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """Returns a word of a set, in lower case; the value may be in any case."""
        text = self.raw.get(key, "") or default
        if text.lower() not in choices:
            self.refuse(key, text, "one of " + ", ".join(choices))
            return default
        return text.lower()

    def flag(self, key: str, *, default: bool) -> bool:
        """Returns True or False; the value may be in any case."""
        text = self.raw.get(key, "").strip()
        return self.take(lambda: bool(parse_type(key, text, Type.BOOLEAN)), default) if text else default

    def missing(self, key: str, legal: str) -> None:
        """Notes that a key has to be set."""
        if key in self.unknown:
            return
        self.note(key, f"{key} is missing: it must be set in the worker's properties: {legal}")

    def refuse(self, key: str, value: object, legal: str) -> None:
        """Notes a value that is not legal."""
        self._note(InvalidArgument.of(key, value, legal))

    def note(self, key: str, text: str) -> None:
        """Notes an error of a key, with a text of its own."""
        written = self._written.get(key, "")
        if references(written) and written != self.raw[key]:
            _, illegal, legal = text.rpartition(" is not legal: ")
            shown = f"{key}: {written!r} resolves to a value that is not legal: {legal}"
            text = shown if illegal else text.replace(self.raw[key], written)
        self._problems.append(Violation(key, text))

    def take(self, read: Callable[[], T], instead: T) -> T:
        """Returns the result of another reader; `instead` if it raises InvalidArgument or ConfigValueError, which is
        noted."""
        try:
            return read()
        except InvalidArgument as error:
            self._note(error)
        except ConfigValueError as error:
            self.note(error.key, str(error))
        return instead

    def end(self) -> None:
        """Raises InvalidArgument with all noted errors."""
        if self._problems:
            raise InvalidArgument.of_all(self._problems)

    def _note(self, error: InvalidArgument) -> None:
        named = _NAMED.match(error.message)
        self.note(error.metadata.get("field") or (named[1] if named else ""), error.message)
