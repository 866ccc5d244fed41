"""The settings of shabondis, HTTP sources and sinks of topics, which are stored and do not run."""

from __future__ import annotations

from dataclasses import replace

from keelman.gateway.ohara.definitions import common
from keelman.gateway.ohara.wire.setting_def import Necessary, Permission, SettingDef, Type, table

SOURCE_CLASS = "oharastream.ohara.shabondi.ShabondiSource"
SINK_CLASS = "oharastream.ohara.shabondi.ShabondiSink"
CLASS, CLIENT_PORT, ENDPOINT = "shabondi.class", "shabondi.client.port", "shabondi.endpoint"
TO_TOPICS, FROM_TOPICS = "shabondi.source.toTopics", "shabondi.sink.fromTopics"
BROKER_CLUSTER_KEY = "brokerClusterKey"

SHABONDI = table(
    common.GROUP,
    common.NAME,
    common.image_name("shabondi"),
    SettingDef(
        CLASS, Type.STRING, "whether it is a source or a sink", necessary=Necessary.REQUIRED,
        permission=Permission.CREATE_ONLY, recommended=(SOURCE_CLASS, SINK_CLASS),
    ),
    SettingDef(
        CLIENT_PORT, Type.BINDING_PORT, "the port at which it answers", necessary=Necessary.REQUIRED
    ),
    SettingDef(
        ENDPOINT, Type.STRING, "where it answers; made from node and port", permission=Permission.READ_ONLY
    ),
    common.in_group(common.JMX_PORT, "core"),
    SettingDef(
        BROKER_CLUSTER_KEY, Type.OBJECT_KEY, "the broker cluster that has its topic", necessary=Necessary.REQUIRED,
        reference="BROKER",
    ),
    SettingDef(
        "shabondi.brokers", Type.STRING, "the addresses of the brokers", necessary=Necessary.REQUIRED, internal=True
    ),
    replace(common.NODE_NAMES, necessary=Necessary.OPTIONAL),
    common.ROUTES,
    common.TAGS,
    common.in_group(common.XMX, "core"),
    common.in_group(common.XMS, "core"),
)  # fmt: skip
SHABONDI_SOURCE = (
    *SHABONDI,
    SettingDef(TO_TOPICS, Type.OBJECT_KEYS, "the topic that it writes", reference="TOPIC", order=len(SHABONDI)),
)
SHABONDI_SINK = (
    *SHABONDI,
    SettingDef(FROM_TOPICS, Type.OBJECT_KEYS, "the topic that it reads", reference="TOPIC", order=len(SHABONDI)),
    SettingDef(
        "shabondi.sink.poll.timeout", Type.DURATION, "the longest time of one read", default="1500 milliseconds",
        order=len(SHABONDI) + 1,
    ),
    SettingDef(
        "shabondi.sink.group.idletime", Type.DURATION, "after how long without a reader a group is given up",
        default="180000 milliseconds", order=len(SHABONDI) + 2,
    ),
)  # fmt: skip
