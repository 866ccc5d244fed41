"""The settings of pipelines."""

from __future__ import annotations

from keelman.gateway.ohara.definitions.common import GROUP, NAME, TAGS
from keelman.gateway.ohara.wire.setting_def import SettingDef, Type, table

ENDPOINTS = "endpoints"

PIPELINE = table(
    GROUP,
    NAME,
    SettingDef(ENDPOINTS, Type.ARRAY, "the objects of this pipeline: group, name and kind of each"),
    TAGS,
)
