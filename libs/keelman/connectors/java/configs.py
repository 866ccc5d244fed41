"""The keys of a Java class, and its own validation of their values: converts its ConfigDef and Config to ours.

Source: `org.apache.kafka.common.config.ConfigDef`, `ConfigValue` and `org.apache.kafka.connect.connector.Connector
.validate` of Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from keelman.connect.config.definition import (
    REQUIRED,
    ClassFinder,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Importance,
    Type,
    Validator,
    Width,
)
from keelman.connect.config.types import Password, text_of
from keelman.connect.errors import ConfigValueError, ConnectError
from keelman.connectors.java.jvm import java_class, jpype

CONFIG_DEF = "org.apache.kafka.common.config.ConfigDef"

_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "java.lang.Boolean": bool,
    "java.lang.String": str,
    **{f"java.lang.{name}": int for name in ("Integer", "Long", "Short")},
    **{f"java.lang.{name}": float for name in ("Double", "Float")},
    "org.apache.kafka.common.config.types.Password": lambda value: Password(str(value.value())),
    "java.lang.Class": lambda value: str(value.getName()),
}

Judge = Callable[[Mapping[str, str | None]], dict[str, ConfigValue]]


class JavaConfigDef(ConfigDef):
    """Keys whose values the Java class validates itself: its validators and recommenders are Java's."""

    def __init__(self, *keys: ConfigKey, judge: Judge) -> None:
        super().__init__(*keys)
        self._judge = judge

    def validate(self, config: Mapping[str, str | None], find: ClassFinder | None = None) -> dict[str, ConfigValue]:
        """Returns the class's result for each key. Raises its exceptions as ConnectError."""
        return self._judge(config)


def config_keys(definition: Any) -> list[ConfigKey]:
    """Returns the keys of a Java ConfigDef, in its order."""
    return [_key(entry.getValue()) for entry in definition.configKeys().entrySet()]


def step_definition(definition: Any) -> ConfigDef:
    """Returns the keys of a converter, transform or predicate, with Java's own validators."""
    if definition is None:
        raise ConnectError("config() must return a ConfigDef that is not null.")
    pairs = zip(config_keys(definition), definition.configKeys().values(), strict=True)
    return ConfigDef(*(replace(key, validator=_validator(key.type, java)) for key, java in pairs))


def _validator(kind: Type, java: Any) -> Validator | None:
    if java.validator is None:
        return None
    parse = _class(CONFIG_DEF).parseType

    def check(name: str, value: Any) -> None:
        text = value.value if isinstance(value, Password) else text_of(value, kind)
        try:
            java.validator.ensureValid(name, parse(name, text, java.type()))
        except jpype().JException as error:
            thrown: Any = error
            raise ConfigValueError(name, text, whole=str(thrown.getMessage())) from None

    return check


def config_values(values: Any) -> dict[str, ConfigValue]:
    """Converts a Java list of ConfigValues to ours, by key."""
    return {
        str(value.name()): ConfigValue(
            str(value.name()),
            python_value(value.value()),
            [python_value(each) for each in value.recommendedValues()],
            [str(each) for each in value.errorMessages()],
            bool(value.visible()),
        )
        for value in values
    }


def python_value(value: Any) -> Any:
    """Converts a Java configuration value to ours: numbers, texts, lists, passwords, classes by their names."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, _class("java.util.Collection")):
        return [python_value(item) for item in value]
    convert = _VALUES.get(str(value.getClass().getName()))
    return str(value.toString()) if convert is None else convert(value)


def json_converter(*, schemas: bool, key: bool = False) -> Any:
    """Returns a configured JsonConverter of Connect's, which writes with or without schemas."""
    converter = _class("org.apache.kafka.connect.json.JsonConverter")()
    converter.configure(string_map({"schemas.enable": "true" if schemas else "false"}), key)
    return converter


def string_map(pairs: Mapping[str, str | None]) -> Any:
    """Returns a Java map of these texts."""
    java_map = _class("java.util.HashMap")()
    for key, value in pairs.items():
        java_map.put(key, value)
    return java_map


def _key(key: Any) -> ConfigKey:
    default = python_value(key.defaultValue) if key.hasDefault() else REQUIRED
    return ConfigKey(
        str(key.name),
        Type[str(key.type().name())],
        str(default) if isinstance(default, Password) else default,
        Importance[str(key.importance.name())],
        str(key.documentation or ""),
        group=None if key.group is None else str(key.group),
        order=int(key.orderInGroup),
        width=Width[str(key.width.name())],
        display_name=str(key.displayName or ""),
        dependents=[str(dependent) for dependent in key.dependents],
        internal=bool(key.internalConfig),
    )


def _class(name: str) -> Any:
    return java_class(name)


def task_state(connector: str, task: int, config: Any) -> tuple[Any, Any]:
    """Returns a task's ConnectorTaskId, and a ClusterConfigState of Connect's with only its configuration (Java's
    map)."""
    whose = java_class("org.apache.kafka.connect.util.ConnectorTaskId")(connector, jpype().JInt(task))
    maps, sets = java_class("java.util.HashMap"), java_class("java.util.HashSet")
    configs = maps()
    configs.put(whose, config)
    session = jpype().JObject(None, java_class("org.apache.kafka.connect.runtime.SessionKey"))
    state = java_class("org.apache.kafka.connect.storage.ClusterConfigState")(
        jpype().JLong(0), session, maps(), maps(), maps(), configs, maps(), maps(), maps(), sets(), sets()
    )
    return whose, state
