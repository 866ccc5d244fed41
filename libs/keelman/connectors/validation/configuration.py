"""Judges a connector's whole configuration as Connect's `validate` does. Opens no client and reads no data."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from keelman.connect import contract
from keelman.connect.config.connector_keys import ROLES, VERSION, ConverterDefault, common_keys, sink_keys, source_keys
from keelman.connect.config.copying_keys import copying_keys, machine_keys, splitting_keys
from keelman.connect.config.definition import ConfigDef, ConfigValue
from keelman.connect.config.error_keys import budget_keys, dead_letter_keys
from keelman.connect.config.info import Info, config_infos, infos
from keelman.connect.config.life_keys import life_keys
from keelman.connect.config.plugin_keys import CLASS, alias_keys, latest, version_problem
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.config.types import trim
from keelman.connect.config.versions import VersionRangeError
from keelman.connect.converters.converter import SIMPLE_HEADERS
from keelman.connect.java.text import hash_order, java_text
from keelman.connect.plugin import Connector, Direction
from keelman.connectors.registry import PluginRegistry, find_connector, full_name
from keelman.connectors.validation.rules import (
    add_client_faults,
    check_sink,
    check_source,
    check_steps,
    converter_infos,
    override_infos,
)
from keelman.model.errors import InvalidArgument

OWN = "keelman."
NULL_VALUE = "Null value can not be supplied as the configuration value."

Config = Mapping[str, str | None]


def validate(config: Config, worker: Mapping[str, str]) -> dict[str, Any]:
    """Returns the ConfigInfos (keelman.connect.config.info) of a configuration on a worker with these properties.

    Raises NotFound with Connect's message for an unknown class, InvalidArgument without a class and for an unreadable
    version, ConfigValueError for a client's property of a wrong type, and errors of the connector's code.
    """
    named = config.get(CLASS)
    if named is None:
        shown = ", ".join(f"{key}={java_text(config[key])}" for key in hash_order(config, copied=True))
        raise InvalidArgument(f"Connector config {{{shown}}} contains no connector type")
    registry = PluginRegistry()
    connector = find_connector(named)
    try:
        problem = version_problem(registry, connector.names[0], config.get(VERSION))
    except VersionRangeError as error:
        raise InvalidArgument(str(error)) from None
    if problem:
        return _of_another_version(connector, config, problem)
    connector = find_connector(named, config.get(VERSION))
    definition = definition_of(connector, config, worker)
    values = definition.validate(config, registry.find)
    if connector.direction is Direction.SINK:
        check_sink(config, worker, values)
    else:
        check_source(connector, config, worker, values)
    for name, value in config.items():
        if value is None:
            values.setdefault(name, ConfigValue(name)).errors.append(NULL_VALUE)
    own = contract.CONFIG_DEF.of(connector.config_def)
    keys, groups = {**definition.keys, **own.keys}, [*definition.groups, *own.groups]
    checked = {**values, **own.validate(config, registry.find)}
    check_steps(connector, config, checked)
    _check_whole(connector, config, worker, checked)
    _check_own_names(config, checked)
    clients = override_infos(connector.direction, config, worker)
    converters, more = converter_infos(registry, config, values)
    configs: list[Info] = [*infos(keys, checked), *clients, *converters]
    add_client_faults(configs, config, worker)
    return config_infos(named, [*groups, *more], configs)


def keys_of(connector: type[Connector]) -> ConfigDef:
    """All keys of such a connector whatever its configuration, its own first."""
    own = contract.CONFIG_DEF.of(connector.config_def)
    rest = _framework(connector, common_keys(version=connector.version))
    return ConfigDef(*own.keys.values(), *(key for name, key in rest.keys.items() if name not in own.keys))


def definition_of(connector: type[Connector], config: Config, worker: Mapping[str, str]) -> ConfigDef:
    """The keys that such a connector has beside its own, those of its transforms and predicates included."""
    registry = PluginRegistry()
    defaults = tuple(_converter_default(registry, role, config, worker) for role in ROLES)
    version = latest(registry, connector.names[0])
    whole = _framework(connector, common_keys(registry, version, defaults))
    return whole + ConfigDef(
        *alias_keys(registry, config, PluginType.TRANSFORMATION), *alias_keys(registry, config, PluginType.PREDICATE)
    )


def _framework(connector: type[Connector], common: ConfigDef) -> ConfigDef:
    common = common + machine_keys() if connector.converts else common
    if connector.direction is Direction.SINK:
        return common + sink_keys() + copying_keys() + life_keys() + budget_keys()
    own = copying_keys() + splitting_keys() + life_keys() + budget_keys()
    return common + source_keys() + own + dead_letter_keys(sink=False)


def _converter_default(
    registry: PluginRegistry, role: str, config: Config, worker: Mapping[str, str]
) -> ConverterDefault:
    key = f"{role}.converter"
    own, shared = config.get(key), worker.get(key) or (SIMPLE_HEADERS if role == "header" else None)
    default = None if shared is None else registry.find(shared) or shared
    if own is not None:
        class_name = full_name(own) if own == trim(own) else None
        kind = PluginType.HEADER_CONVERTER if role == "header" else PluginType.CONVERTER
        version = latest(registry, class_name) if class_name is not None and registry.is_a(class_name, kind) else None
    else:
        version = worker.get(f"{key}.plugin.version") or (None if default is None else latest(registry, default))
    return ConverterDefault(default, version)


def _of_another_version(connector: type[Connector], config: Config, problem: str) -> dict[str, Any]:
    definition = common_keys(PluginRegistry(), connector.version)
    values = definition.validate(config, PluginRegistry().find)
    for value in values.values():
        value.recommended = []
    for key in (CLASS, VERSION):
        values[key].errors.append(problem)
    values[VERSION].recommended = list(dict.fromkeys(PluginRegistry().versions(connector.names[0])))
    return config_infos(config[CLASS] or "", definition.groups, infos(definition.keys, values))


def _check_own_names(config: Config, config_values: dict[str, ConfigValue]) -> None:
    """Refuses unknown keys with our prefix: other unknown keys may have a meaning elsewhere, these are slips."""
    own_keys = {*copying_keys().keys, *splitting_keys().keys, *life_keys().keys, *budget_keys().keys}
    own_keys |= dead_letter_keys(sink=False).keys.keys()
    for key in config:
        if key.startswith(OWN) and key not in own_keys and key not in config_values:
            near = difflib.get_close_matches(key, own_keys, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            config_values[key] = ConfigValue(key, config[key], errors=[f"Unknown configuration {key}{hint}"])


def _check_whole(
    connector: type[Connector], config: Config, worker: Mapping[str, str], config_values: dict[str, ConfigValue]
) -> None:
    """Adds the errors that the connector itself finds beyond single keys."""
    present = {key: value for key, value in config.items() if value is not None}
    for error in contract.VALIDATE.of(connector.validate, connector.completed(present, worker)):
        value = config_values.setdefault(error.key, ConfigValue(error.key))
        if str(error) not in value.errors:
            value.errors.append(str(error))
