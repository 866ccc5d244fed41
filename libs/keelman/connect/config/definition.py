"""Defines configuration keys, and validates a configuration by them. Unknown keys are accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from keelman.connect.config.rules import (
    Rule,
    Validator,
    all_of,
    at_least,
    between,
    clean_name,
    non_empty,
    non_null,
    one_of,
    one_of_any_case,
    unique,
)
from keelman.connect.config.types import REQUIRED, ClassFinder, Importance, Password, Type, Width, parse_type, text_of
from keelman.connect.errors import ConfigValueError

__all__ = [
    "REQUIRED",
    "ClassFinder",
    "ConfigDef",
    "ConfigKey",
    "ConfigValue",
    "Importance",
    "Password",
    "Recommender",
    "Type",
    "Validator",
    "Width",
    "all_of",
    "at_least",
    "between",
    "clean_name",
    "non_empty",
    "non_null",
    "one_of",
    "one_of_any_case",
    "parse_type",
    "text_of",
    "unique",
]


class Recommender(Protocol):
    """Recommends values of a key, and decides whether forms show it. `parsed` has the typed values of all keys, None
    for invalid ones."""

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns values to choose from. May raise ConfigValueError."""

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Whether the key has a meaning beside the other values."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key. `default` is already typed; REQUIRED means there is none. The validator raises ConfigValueError.

    `group`, `order` (within the group), `width` and `display_name` are for forms. `dependents` are keys whose
    recommended values or visibility depend on this one. `default_text` describes a default that differs from machine to
    machine. An `internal` key is not shown in documentation.
    """

    name: str
    type: Type
    default: Any = REQUIRED
    importance: Importance = Importance.HIGH
    doc: str = ""
    validator: Validator | None = None
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str = ""
    dependents: Sequence[str] = ()
    recommender: Recommender | None = None
    internal: bool = False
    default_text: str | None = None

    @property
    def required(self) -> bool:
        """Whether there is no default."""
        return self.default is REQUIRED

    def parse(self, config: Mapping[str, str | None], find: ClassFinder | None = None) -> Any:
        """Returns the typed value. Raises ConfigValueError with Connect's text."""
        value = self.read(config, find)
        if self.validator is not None:
            self.validator(self.name, value)
        return value

    def read(self, config: Mapping[str, str | None], find: ClassFinder | None = None) -> Any:
        """Returns the typed value, not validated. Raises ConfigValueError."""
        if self.name in config:
            return parse_type(self.name, config[self.name], self.type, find)
        if self.default is REQUIRED:
            text = f'Missing required configuration "{self.name}" which has no default value.'
            raise ConfigValueError(self.name, None, whole=text)
        return self.default

    def among(self, *configs: Mapping[str, str]) -> Any:
        """Returns the typed value from the first configuration with a non-blank text under the key, else the default.

        For keys that a connector may set, or else the worker. Raises ConfigValueError.
        """
        texts = (config.get(self.name, "") for config in configs)
        text = next((text for text in texts if text.strip()), None)
        return self.parse({} if text is None else {self.name: text})


@dataclass(slots=True)
class ConfigValue:
    """The result of validating one key: its typed value, values to choose from, errors, and whether it has a
    meaning."""

    name: str
    value: Any = None
    recommended: Sequence[Any] = ()
    errors: list[str] = field(default_factory=list)
    visible: bool = True


class ConfigDef:
    """The keys of a connector, a converter or the framework."""

    def __init__(self, *keys: ConfigKey) -> None:
        self.keys = {key.name: key for key in keys}

    @property
    def groups(self) -> list[str]:
        """The groups in the order of their first keys."""
        return list(dict.fromkeys(key.group for key in self.keys.values() if key.group is not None))

    def __add__(self, other: ConfigDef) -> ConfigDef:
        """Combines both sets of keys; for a name in both, the right key takes the place of the left one."""
        return ConfigDef(*{**self.keys, **other.keys}.values())

    def parse(self, config: Mapping[str, str], find: ClassFinder | None = None) -> dict[str, Any]:
        """Returns the typed values of all known keys. Raises the first ConfigValueError."""
        return {name: key.parse(config, find) for name, key in self.keys.items()}

    def validate(self, config: Mapping[str, str | None], find: ClassFinder | None = None) -> dict[str, ConfigValue]:
        """Returns the result for each key, in their order. Raises only errors that recommenders and validators raise
        against their contract."""
        config_values = {name: ConfigValue(name) for name in self.keys}
        for name in self._undefined():
            error = f"{name} is referred in the dependents, but not defined."
            config_values[name] = ConfigValue(name, errors=[error], visible=False)
        for name, key in self.keys.items():
            _read_and_check(key, config, find, config_values[name])
        parsed = {name: config_values[name].value for name in self.keys}
        for name, key in self.keys.items():
            _recommend(key, parsed, config_values[name])
        return config_values

    def embedded(self, prefix: str, group: str, start: int) -> list[ConfigKey]:
        """Returns the keys for a larger definition: under a prefix, in a group, numbered from `start`.

        Messages of validators name the key without its prefix, as Connect's do.
        """
        return [
            replace(
                key,
                name=prefix + key.name,
                validator=_unprefixed(prefix, key.validator),
                group=group if key.group is None else f"{group}: {key.group}",
                order=start + place,
                display_name=key.display_name or key.name,
                dependents=[prefix + dependent for dependent in key.dependents],
                recommender=None if key.recommender is None else _Unprefixed(prefix, key.recommender),
            )
            for place, key in enumerate(self._sorted())
        ]

    def _sorted(self) -> list[ConfigKey]:
        groups = {group: place for place, group in enumerate(self.groups)}
        ranks = list(Importance)

        def rank(key: ConfigKey) -> tuple[int, int, bool, int, str]:
            place = -1 if key.group is None else groups[key.group]
            return place, key.order, not key.required, 0 if key.required else ranks.index(key.importance), key.name

        return sorted(self.keys.values(), key=rank)

    def _undefined(self) -> list[str]:
        named = (dependent for key in self.keys.values() for dependent in key.dependents)
        return [name for name in dict.fromkeys(named) if name not in self.keys]


def _read_and_check(
    key: ConfigKey, config: Mapping[str, str | None], find: ClassFinder | None, config_value: ConfigValue
) -> None:
    try:
        config_value.value = key.read(config, find)
    except ConfigValueError as error:
        config_value.errors.append(str(error))
    # Connect's own rules also check a value that could not be parsed, and Connect reports both errors.
    if isinstance(key.validator, Rule) or (key.validator is not None and not config_value.errors):
        try:
            key.validator(key.name, config_value.value)
        except ConfigValueError as error:
            config_value.errors.append(str(error))


def _recommend(key: ConfigKey, parsed: Mapping[str, Any], config_value: ConfigValue) -> None:
    if key.recommender is None:
        return
    try:
        config_value.recommended = list(key.recommender.valid_values(key.name, parsed))
        config_value.visible = key.recommender.visible(key.name, parsed)
    except ConfigValueError as error:
        config_value.errors.append(str(error))


def _unprefixed(prefix: str, validator: Validator | None) -> Validator | None:
    if validator is None:
        return None

    def check(name: str, value: Any) -> None:
        validator(name.removeprefix(prefix), value)

    return Rule(check, str(validator)) if isinstance(validator, Rule) else check


@dataclass(frozen=True, slots=True)
class _Unprefixed:
    """A recommender that does not know its keys' prefix."""

    prefix: str
    inner: Recommender

    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the inner recommender's values."""
        return self.inner.valid_values(name.removeprefix(self.prefix), self._own(parsed))

    def visible(self, name: str, parsed: Mapping[str, Any]) -> bool:
        """Returns the inner recommender's answer."""
        return self.inner.visible(name.removeprefix(self.prefix), self._own(parsed))

    def _own(self, parsed: Mapping[str, Any]) -> dict[str, Any]:
        return {name.removeprefix(self.prefix): value for name, value in parsed.items() if name.startswith(self.prefix)}
