"""The settings of all connectors."""

from __future__ import annotations

from dataclasses import replace

from keelman.gateway.ohara.definitions import config
from keelman.gateway.ohara.definitions.common import GROUP, NAME, TAGS
from keelman.gateway.ohara.wire.setting_def import Definitions, Necessary, Permission, SettingDef, Type, table

CHECK_RULE = "check.rule"
CHECK_RULES = ("NONE", "PERMISSIVE", "ENFORCING")
KIND, VERSION, AUTHOR, REVISION = "kind", "version", "author", "revision"
META = "meta"
UNKNOWN = "unknown"
DATA_TYPES = (
    "BYTES", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "STRING", "OBJECT", "ROW", "CELL",
)  # fmt: skip


def _column(name: str, kind: str = "string", recommended: tuple[str, ...] = ()) -> dict[str, object]:
    return {"name": name, "type": kind, "recommendedValues": list(recommended)}


CONNECTOR = table(
    SettingDef(
        config.CONNECTOR_KEY, Type.OBJECT_KEY, "the key of this connector", necessary=Necessary.REQUIRED, internal=True
    ),
    GROUP,
    NAME,
    SettingDef(
        config.CLASS, Type.CLASS, "the class of this connector", necessary=Necessary.REQUIRED,
        permission=Permission.CREATE_ONLY,
    ),
    SettingDef(config.TOPIC_KEYS, Type.OBJECT_KEYS, "the topics of this connector", reference="TOPIC"),
    SettingDef(
        config.TOPICS, Type.ARRAY, "what Kafka calls the topics of this connector, made from topicKeys",
        necessary=Necessary.REQUIRED, reference="TOPIC", internal=True,
    ),
    SettingDef(config.TASKS, Type.POSITIVE_INT, "the most tasks of this connector", default=1),
    SettingDef(
        config.COLUMNS, Type.TABLE, "how the columns of rows are named and typed",
        table_keys=(
            _column("order", "number"), _column("dataType", recommended=DATA_TYPES), _column("name"),
            _column("newName"),
        ),
    ),
    SettingDef(
        CHECK_RULE, Type.STRING, "what becomes of data that do not match the columns", default=CHECK_RULES[0],
        recommended=CHECK_RULES,
    ),
    SettingDef(
        config.WORKER_KEY, Type.OBJECT_KEY, "the worker cluster that runs this connector", necessary=Necessary.REQUIRED,
        reference="WORKER",
    ),
    *(
        SettingDef(name, Type.CLASS, f"the class that is this connector's {name.replace('.', ' ')}", internal=True)
        for name in config.CONVERTERS
    ),
    SettingDef(config.PARTITIONER, Type.CLASS, "the class that chooses the partition of a record"),
    TAGS,
)  # fmt: skip
"""The settings of connectors of any kind."""
OHARA_CONNECTOR = tuple(
    replace(setting, default={config.PARTITIONER: config.OHARA_PARTITIONER} .get(setting.key, config.BYTES_CONVERTER))
    if setting.key in (*config.CONVERTERS, config.PARTITIONER) else setting
    for setting in CONNECTOR
)  # fmt: skip
"""The settings of Ohara's own connectors: they write and read bytes."""


def meta(kind: str, version: str = "") -> Definitions:
    """Returns the read-only settings that identify a class by their defaults."""
    defaults = ((AUTHOR, UNKNOWN), (VERSION, version or UNKNOWN), (REVISION, UNKNOWN), (KIND, kind))
    return table(
        *(
            SettingDef(key, Type.STRING, key, group=META, permission=Permission.READ_ONLY, default=value)
            for key, value in defaults
        )
    )
