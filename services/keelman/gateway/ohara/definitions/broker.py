"""The settings of brokers."""

from __future__ import annotations

from keelman.gateway.ohara.definitions import common
from keelman.gateway.ohara.wire.setting_def import Necessary, SettingDef, Type, table

ZOOKEEPER_CLUSTER_KEY, LOG_DIRS = "zookeeperClusterKey", "log.dirs"
PERFORMANCE = "performance"


def _number(key: str, documentation: str) -> SettingDef:
    return SettingDef(key, Type.POSITIVE_INT, documentation, group=PERFORMANCE, default=1)


KAFKA = (
    _number("num.partitions", "number of partitions of a topic that is made without asking for a number"),
    _number("offsets.topic.replication.factor", "number of replicas of the topic with the offsets of consumer groups"),
    _number("num.network.threads", "number of threads that serve the network"),
    _number("num.io.threads", "number of threads that serve requests"),
)
"""The settings that become properties of the brokers, beside KAFKA_0_12."""
KAFKA_0_12 = (
    SettingDef(
        "queued.max.request.bytes", Type.LONG, "bytes of requests that wait before no more are read, -1 for no limit",
        group=PERFORMANCE,
    ),
    SettingDef("socket.request.max.bytes", Type.POSITIVE_INT, "bytes of the largest request", group=PERFORMANCE),
)  # fmt: skip
BROKER = table(
    common.GROUP,
    common.NAME,
    common.image_name("broker"),
    common.NODE_NAMES,
    common.ROUTES,
    common.TAGS,
    SettingDef(
        ZOOKEEPER_CLUSTER_KEY, Type.OBJECT_KEY, "the zookeeper cluster of this broker cluster",
        necessary=Necessary.REQUIRED, reference="ZOOKEEPER",
    ),
    SettingDef(LOG_DIRS, Type.OBJECT_KEYS, "the volumes of the brokers' data", reference="VOLUME"),
    *KAFKA,
    common.XMS,
    common.XMX,
    common.CLIENT_PORT,
    common.JMX_PORT,
)  # fmt: skip
SENT_ONLY = (
    *KAFKA_0_12,
    SettingDef(
        "jvm.performance.options", Type.STRING, "further options of the Java virtual machine", group=PERFORMANCE
    ),
)
"""Settings of Ohara 0.12: without a default here, checked, stored and used if they are sent."""
