"""The settings of topics."""

from __future__ import annotations

from keelman.gateway.ohara.definitions.common import GROUP, NAME, TAGS
from keelman.gateway.ohara.wire.setting_def import Necessary, SettingDef, Type, table

BROKER_CLUSTER_KEY = "brokerClusterKey"
PARTITIONS, REPLICATIONS = "numberOfPartitions", "numberOfReplications"
SEGMENT_BYTES, SEGMENT_MS = "segment.bytes", "segment.ms"
SEGMENT_TIME, RETENTION_TIME = "segment.time", "retention.time"
CLEANUP_POLICY, DIRTY_RATIO, COMPRESSION = "cleanup.policy", "min.cleanable.dirty.ratio", "compression.type"
CONFIGS = "configs"
GIGABYTE, WEEK_MS = 1 << 30, 604_800_000

TOPIC = table(
    GROUP,
    NAME,
    TAGS,
    SettingDef(
        BROKER_CLUSTER_KEY, Type.OBJECT_KEY, "the broker cluster that has this topic", necessary=Necessary.REQUIRED,
        reference="BROKER",
    ),
    SettingDef(PARTITIONS, Type.POSITIVE_INT, "the number of partitions", group="performance", default=1),
    SettingDef(
        REPLICATIONS, Type.POSITIVE_SHORT, "the number of replicas of each partition", group="performance", default=1
    ),
    SettingDef(
        SEGMENT_BYTES, Type.POSITIVE_INT, "the largest segment of a partition, in bytes", group=CONFIGS,
        default=GIGABYTE,
    ),
    SettingDef(
        SEGMENT_MS, Type.POSITIVE_LONG, "the time after which a new segment is begun, in milliseconds",
        group=CONFIGS, default=WEEK_MS,
    ),
    SettingDef(SEGMENT_TIME, Type.DURATION, "the time after which a new segment is begun", group=CONFIGS),
    SettingDef(RETENTION_TIME, Type.DURATION, "how long records are kept", group=CONFIGS),
    SettingDef(
        CLEANUP_POLICY, Type.STRING, "what becomes of old records: delete, compact or both", group=CONFIGS,
        recommended=("delete", "compact"),
    ),
    SettingDef(
        DIRTY_RATIO, Type.DOUBLE, "how much of a partition is not compacted when it is compacted again", group=CONFIGS
    ),
    SettingDef(COMPRESSION, Type.STRING, "how records are compressed", group=CONFIGS),
)  # fmt: skip
"""The last five are Ohara 0.12's: without a default, and passed to Kafka if they are sent."""
