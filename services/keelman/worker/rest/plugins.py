"""Serves the plugin part of Connect's REST API: plugins, their keys, and the validation of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.connect.config.info import key_info
from keelman.connect.config.plugin_keys import version_problem
from keelman.connect.config.plugin_kinds import PluginType
from keelman.connect.config.versions import VersionRangeError
from keelman.connect.errors import ConfigValueError
from keelman.connectors import registry
from keelman.connectors.registry import PluginRegistry, find_connector
from keelman.connectors.validation import configuration as validation
from keelman.model.errors import InvalidArgument, NotFound
from keelman.runtime.own_thread import in_thread
from keelman.worker.asking.third_party import infos_of
from keelman.worker.errors import RestError, not_found

CONNECTORS = (PluginType.SINK, PluginType.SOURCE)
# Connect's `validate` wraps its errors, so that its clients see a 500 that begins so.
BAD_REQUEST = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException"
_SUFFIX = "Connector"


async def list_plugins(*, connectors_only: bool) -> list[dict[str, Any]]:
    """Returns class, type and version of every plugin, kind by kind."""
    kinds = CONNECTORS if connectors_only else tuple(PluginType)
    _, listing = in_thread(lambda: registry.listed(*kinds))
    return [
        {"class": plugin.class_name, "type": plugin.kind.value, "version": plugin.version} for plugin in await listing
    ]


async def keys_of(plugin: str, version: str | None = None) -> list[dict[str, Any]]:
    """Returns the keys of a plugin; for a connector its own first, then those of every such connector.

    Raises 404 for an unknown plugin, 400 for an unknown version, and a third-party plugin's own errors.
    """
    full = registry.full_name(plugin)
    if full is None:
        raise not_found(f"Unknown plugin {plugin}.")
    try:
        _, keys = in_thread(lambda: _keys_of(full, version))
        return await keys
    except VersionRangeError:
        raise RestError(400, f"Invalid version specification: {version}") from None


def _keys_of(full: str, version: str | None) -> list[dict[str, Any]]:
    problem = version_problem(PluginRegistry(), full, version)
    if problem:
        raise RestError(400, problem)
    kind = registry.kind_of(full)
    if kind is None or kind in CONNECTORS:
        definition = validation.keys_of(find_connector(full))
    else:
        definition = PluginRegistry().definition(full, kind, version)
    return [key_info(key) for key in definition.keys.values()]


async def validate_config(
    plugin: str, config: Mapping[str, str | None], worker_config: Mapping[str, str]
) -> dict[str, Any]:
    """Returns ConfigInfos for a configuration. Raises 400 for another class than the plugin's, 500 with Connect's text
    for an unknown class, for none, and for a version that cannot be read, and a third-party plugin's own errors."""
    class_name = config.get("connector.class")
    if class_name is not None and not _short(class_name).endswith(_short(plugin)):
        raise RestError(400, f"Included connector type {class_name} does not match request type {plugin}")
    _, infos = in_thread(lambda: infos_of(config, worker_config))
    try:
        return await infos
    except (NotFound, InvalidArgument) as error:
        raise RestError(500, f"{BAD_REQUEST}: {error.message}") from None
    except ConfigValueError as error:
        raise RestError(500, f"{error.java_name}: {error}") from None


def _short(plugin: str) -> str:
    return plugin.removesuffix(_SUFFIX) or plugin
