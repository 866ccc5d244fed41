"""The keys of files: plugins by their origin, and plugins uploaded outside this API by name and version."""

from __future__ import annotations

from keelman.api.connect.v1 import plugin_service_pb2 as pb
from keelman.api.connect.v1.plugin_pb2 import (
    PLUGIN_KIND_JAR,
    PLUGIN_KIND_TAR_GZ,
    PLUGIN_KIND_WHEEL,
    PLUGIN_KIND_ZIP,
    Plugin,
)
from keelman.gateway.ohara.state.control import OharaControl
from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, ObjectKey, key_of_origin

VERSION = "1"
"""The version of every file uploaded here: another file has another key."""
ENDINGS = {
    PLUGIN_KIND_JAR: ".jar",
    PLUGIN_KIND_ZIP: ".zip",
    PLUGIN_KIND_WHEEL: ".whl",
    PLUGIN_KIND_TAR_GZ: ".tar.gz",
}


def file_key(plugin: Plugin) -> ObjectKey | None:
    """Returns the key of a plugin as a file; None for a plugin of another API."""
    if plugin.origin.api:
        return key_of_origin(plugin.origin)
    return ObjectKey(DEFAULT_GROUP, f"{plugin.name}-{plugin.version}{ENDINGS.get(plugin.kind, '')}")


async def files_by_key(control: OharaControl) -> dict[ObjectKey, Plugin]:
    """Returns all files; of two with one key the file uploaded here."""
    plugins = await control.all(pb.ListPluginsRequest)
    plugins.sort(key=lambda plugin: plugin.origin.api)
    return {key: plugin for plugin in plugins if (key := file_key(plugin)) is not None}
