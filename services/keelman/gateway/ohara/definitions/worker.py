"""The settings of workers."""

from __future__ import annotations

from keelman.gateway.ohara.definitions import common
from keelman.gateway.ohara.wire.setting_def import Necessary, Permission, SettingDef, Type, table

CONFIG, OFFSET, STATUS = "config", "offset", "status"
TOPIC_KINDS = (CONFIG, OFFSET, STATUS)
"""The kinds of storage topics, in the order in which their names are checked."""
BROKER_CLUSTER_KEY, GROUP_ID = "brokerClusterKey", "group.id"
PLUGIN_KEYS, SHARED_JAR_KEYS, FREE_PORTS = "pluginKeys", "sharedJarKeys", "freePorts"
COMPRESSION, JVM_OPTIONS = "producer.compression.type", "jvm.performance.options"
IMAGE = "connect-worker"
PERFORMANCE = "performance"


def topic_key(kind: str) -> str:
    """Returns the setting with a storage topic's name."""
    return f"{kind}.storage.topic"


def partitions_key(kind: str) -> str:
    """Returns the setting with a storage topic's number of partitions."""
    return f"{kind}.storage.partitions"


def replication_key(kind: str) -> str:
    """Returns the setting with a storage topic's number of replicas."""
    return f"{kind}.storage.replication.factor"


def _storage(kind: str, permission: Permission = Permission.EDITABLE) -> tuple[SettingDef, ...]:
    return (
        SettingDef(
            topic_key(kind), Type.STRING, f"name of the {kind} topic, unique in the broker cluster",
            group=PERFORMANCE, necessary=Necessary.RANDOM_DEFAULT,
        ),
        SettingDef(
            partitions_key(kind), Type.POSITIVE_INT, f"number of partitions of the {kind} topic",
            group=PERFORMANCE, default=1, permission=permission,
        ),
        SettingDef(
            replication_key(kind), Type.POSITIVE_SHORT, f"number of replicas of the {kind} topic",
            group=PERFORMANCE, default=1,
        ),
    )  # fmt: skip


WORKER = table(
    common.GROUP,
    common.NAME,
    common.image_name(IMAGE),
    common.NODE_NAMES,
    common.ROUTES,
    common.TAGS,
    SettingDef(
        BROKER_CLUSTER_KEY, Type.OBJECT_KEY, "the broker cluster that keeps the data of this worker cluster",
        necessary=Necessary.REQUIRED, reference="BROKER",
    ),
    SettingDef(
        GROUP_ID, Type.STRING, "the group of the workers, unique in the broker cluster",
        necessary=Necessary.RANDOM_DEFAULT,
    ),
    *_storage(STATUS),
    *_storage(CONFIG, Permission.READ_ONLY),
    *_storage(OFFSET),
    common.XMS,
    common.XMX,
    SettingDef(
        PLUGIN_KEYS, Type.OBJECT_KEYS, "the files with the connectors of this cluster", group="public",
        reference="FILE",
    ),
    SettingDef(
        SHARED_JAR_KEYS, Type.OBJECT_KEYS, "the jars that all connectors of this cluster find", group="public",
        reference="FILE",
    ),
    SettingDef(FREE_PORTS, Type.ARRAY, "ports that are kept free for the connectors of this cluster", group="public"),
    common.CLIENT_PORT,
    common.JMX_PORT,
)  # fmt: skip
"""24 settings, in the order of the specification."""

SENT_ONLY = table(
    SettingDef(
        COMPRESSION, Type.STRING, "how what source connectors write is compressed", group=PERFORMANCE,
        recommended=("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    SettingDef(JVM_OPTIONS, Type.STRING, "options of the Java virtual machines of plugins", group=PERFORMANCE),
)  # fmt: skip
"""Settings of Ohara 0.12: without a default, applied and returned if they are sent."""
