"""The settings of streams, which are stored and do not run."""

from __future__ import annotations

from dataclasses import replace

from keelman.gateway.ohara.definitions import common
from keelman.gateway.ohara.wire.setting_def import Necessary, Permission, SettingDef, Type, table

JAR_KEY, CLASS, FROM, TO = "jarKey", "stream.class", "from", "to"
BROKER_CLUSTER_KEY = "brokerClusterKey"

STREAM = table(
    SettingDef(
        BROKER_CLUSTER_KEY, Type.OBJECT_KEY, "the broker cluster that has the topics of this stream",
        necessary=Necessary.REQUIRED, reference="BROKER",
    ),
    SettingDef(
        "servers", Type.STRING, "the addresses of the brokers", necessary=Necessary.REQUIRED, internal=True
    ),
    common.image_name("stream"),
    common.NAME,
    common.GROUP,
    SettingDef(
        JAR_KEY, Type.OBJECT_KEY, "the file with the class of this stream", necessary=Necessary.REQUIRED,
        reference="FILE",
    ),
    SettingDef(CLASS, Type.CLASS, "the class of this stream", permission=Permission.CREATE_ONLY),
    SettingDef(FROM, Type.OBJECT_KEYS, "the topics that are read", reference="TOPIC"),
    SettingDef(TO, Type.OBJECT_KEYS, "the topics that are written", reference="TOPIC"),
    common.in_group(common.JMX_PORT, "core"),
    replace(common.NODE_NAMES, necessary=Necessary.OPTIONAL),
    common.ROUTES,
    common.TAGS,
    common.in_group(common.XMX, "core"),
    common.in_group(common.XMS, "core"),
)  # fmt: skip
