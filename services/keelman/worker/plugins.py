"""What the plugin part of Connect's REST API tells: connectors, their keys, and what is wrong with a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.config_def import REQUIRED, ConfigKey
from keelman.connectors.registry import all_connectors, find_connector
from keelman.model.errors import NotFound
from keelman.worker.inquiry import in_thread
from keelman.worker.rest_errors import RestError, not_found
from keelman.worker.third_party import problems_of


def listed(*, connectors_only: bool) -> list[dict[str, Any]]:
    """Class, type and version of every connector."""
    return [
        {"class": kind.names[0], "type": kind.direction.value, "version": kind.version} for kind in all_connectors()
    ]


async def keys_of(plugin: str) -> list[dict[str, Any]]:
    """The plugin's own keys. Raises 404, and what a third party's plugin raises."""
    try:
        kind = find_connector(plugin)
    except NotFound:
        raise not_found(f"Unknown plugin {plugin}.") from None
    _, definition = in_thread(kind.config_def)
    return [_definition(key) for key in (await definition).keys.values()]


async def validated(plugin: str, config: Mapping[str, str], worker_config: Mapping[str, str]) -> dict[str, Any]:
    """ConfigInfos for a configuration. Raises 400 for another class than the plugin's, and as `keys_of`."""
    class_name = config.get("connector.class")
    if class_name is None:
        raise RestError(400, f"Connector config {{{', '.join(config)}}} contains no connector type")
    try:
        kind = find_connector(class_name)
        same = kind is find_connector(plugin)
    except NotFound as error:
        raise RestError(400, error.message) from None
    if not same:
        raise RestError(400, f"Included connector type {class_name} does not match request type {plugin}")
    problems: dict[str, list[str]] = {}
    _, found = in_thread(lambda: (problems_of(config, worker_config), kind.config_def()))
    errors, definition = await found
    for problem in errors:
        problems.setdefault(problem.key, []).append(problem.message)
    keys = dict(definition.keys)
    infos: list[dict[str, Any]] = [
        {"definition": _definition(key), "value": _value(name, config.get(name), problems.pop(name, []))}
        for name, key in keys.items()
    ]
    infos += [{"definition": None, "value": _value(name, config.get(name), texts)} for name, texts in problems.items()]
    return {
        "name": kind.names[0],
        "error_count": sum(len(i["value"]["errors"]) for i in infos if i["value"]),
        "groups": [],
        "configs": infos,
    }


def _definition(key: ConfigKey) -> dict[str, Any]:
    required = key.default is REQUIRED
    return {
        "name": key.name,
        "type": key.type.value,
        "required": required,
        "default_value": None if required or key.default is None else _text(key.default),
        "importance": key.importance.value,
        "documentation": key.doc,
        "group": None,
        "width": "NONE",
        "display_name": key.name,
        "dependents": [],
        "order": -1,
    }


def _value(name: str, value: str | None, errors: list[str]) -> dict[str, Any]:
    return {"name": name, "value": value, "recommended_values": [], "errors": errors, "visible": True}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)
