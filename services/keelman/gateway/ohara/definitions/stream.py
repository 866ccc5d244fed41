"""The settings of streams, which are stored and do not run."""

from __future__ import annotations

from dataclasses import replace

from keelman.gateway.ohara.definitions.common import (
    GROUP,
    JMX_PORT,
    NAME,
    NODE_NAMES,
    ROUTES,
    TAGS,
    XMS,
    XMX,
    image_name,
    in_group,
)
from keelman.gateway.ohara.definitions.setting import Necessary, Permission, SettingDef, Type, table

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
    image_name("stream"),
    NAME,
    GROUP,
    SettingDef(
        JAR_KEY, Type.OBJECT_KEY, "the file with the class of this stream", necessary=Necessary.REQUIRED,
        reference="FILE",
    ),
    SettingDef(CLASS, Type.CLASS, "the class of this stream", permission=Permission.CREATE_ONLY),
    SettingDef(FROM, Type.OBJECT_KEYS, "the topics that are read", reference="TOPIC"),
    SettingDef(TO, Type.OBJECT_KEYS, "the topics that are written", reference="TOPIC"),
    in_group(JMX_PORT, "core"),
    replace(NODE_NAMES, necessary=Necessary.OPTIONAL),
    ROUTES,
    TAGS,
    in_group(XMX, "core"),
    in_group(XMS, "core"),
)  # fmt: skip
