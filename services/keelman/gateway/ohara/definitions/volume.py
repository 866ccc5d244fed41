"""The settings of volumes."""

from __future__ import annotations

from keelman.gateway.ohara.definitions.common import GROUP, NAME, NODE_NAMES, TAGS
from keelman.gateway.ohara.wire.setting_def import Necessary, SettingDef, Type, table

PATH = "path"

VOLUME = table(
    GROUP,
    NAME,
    NODE_NAMES,
    SettingDef(PATH, Type.STRING, "the folder on each of the nodes", necessary=Necessary.REQUIRED),
    TAGS,
)
