"""The files that a worker cluster names, as the plugins that they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keelman.api.connect.v1.plugin_pb2 import PluginRef
from keelman.gateway.ohara.definitions.worker import PLUGIN_KEYS, SHARED_JAR_KEYS
from keelman.gateway.ohara.files.keys import files_by_key
from keelman.gateway.ohara.state.control import Control
from keelman.gateway.ohara.wire.keys import key_of
from keelman.gateway.ohara.wire.wording import not_found

Refs = dict[str, list[PluginRef]]


async def refs_of(control: Control, settings: Mapping[str, Any]) -> Refs:
    """The plugins by the settings that name them, each once. Raises OharaError for a file that there is not."""
    named = {key: [key_of(one, key) for one in settings.get(key, [])] for key in (PLUGIN_KEYS, SHARED_JAR_KEYS)}
    if not any(named.values()):
        return {key: [] for key in named}
    known = await files_by_key(control)
    found: Refs = {}
    for setting, keys in named.items():
        found[setting] = []
        for key in dict.fromkeys(keys):
            if key not in known:
                raise not_found("file", key)
            plugin = known[key]
            found[setting].append(PluginRef(name=plugin.name, version=plugin.version, sha256=plugin.sha256))
    return found
