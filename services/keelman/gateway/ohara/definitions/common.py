"""Settings that objects of several kinds share."""

from __future__ import annotations

from dataclasses import replace

from keelman.gateway.ohara.wire.keys import DEFAULT_GROUP, LEGAL_WORD
from keelman.gateway.ohara.wire.setting_def import Necessary, Permission, SettingDef, Type

VERSION = "0.11.1"
"""The version of Ohara's API, as served here and as the tag of image names."""
DENIED_NODES = ("start", "stop", "pause", "resume")
HEAP_MB = 2048

GROUP = SettingDef(
    "group", Type.STRING, "group of this object", default=DEFAULT_GROUP, regex=LEGAL_WORD,
    permission=Permission.CREATE_ONLY,
)  # fmt: skip
NAME = SettingDef(
    "name", Type.STRING, "name of this object", necessary=Necessary.RANDOM_DEFAULT, regex=LEGAL_WORD,
    permission=Permission.CREATE_ONLY,
)  # fmt: skip
NODE_NAMES = SettingDef(
    "nodeNames", Type.ARRAY, "the nodes that run this cluster", necessary=Necessary.REQUIRED, reference="NODE",
    deny=DENIED_NODES,
)  # fmt: skip
ROUTES = SettingDef("routes", Type.TAGS, "further host names and their addresses for the processes of this cluster")
TAGS = SettingDef("tags", Type.TAGS, "the tags of this object")
XMS = SettingDef("xms", Type.POSITIVE_LONG, "initial memory in MB", group="performance", default=HEAP_MB)
XMX = SettingDef("xmx", Type.POSITIVE_LONG, "maximum memory in MB", group="performance", default=HEAP_MB)
CLIENT_PORT = SettingDef(
    "clientPort", Type.BINDING_PORT, "the port that clients connect to", group="public",
    necessary=Necessary.RANDOM_DEFAULT,
)  # fmt: skip
JMX_PORT = SettingDef(
    "jmxPort", Type.BINDING_PORT, "the port at which the metrics of a process are read", group="public",
    necessary=Necessary.RANDOM_DEFAULT,
)  # fmt: skip


def image_name(service: str) -> SettingDef:
    """Returns the setting for the image name of a kind of cluster; no image is pulled."""
    return SettingDef(
        "imageName", Type.STRING, "the image that this cluster runs", default=f"oharastream/{service}:{VERSION}",
        permission=Permission.CREATE_ONLY,
    )  # fmt: skip


def in_group(setting: SettingDef, group: str) -> SettingDef:
    """Returns the same setting in another group of a form."""
    return replace(setting, group=group)
