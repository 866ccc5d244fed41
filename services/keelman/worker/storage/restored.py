"""Restores records of the config topic that others have overwritten with meaningless ones."""

from __future__ import annotations

from keelman.kafka.writer import Record
from keelman.worker.storage import config_records as records
from keelman.worker.storage.config_state import ConfigState


def restored(config: ConfigState) -> list[Record]:
    """Returns records that repeat values in force, which the topic would lose once it is compacted."""
    restored_records = (_restored(config, key) for key in sorted(config.spoilt))
    return [record for record in restored_records if record is not None]


def _restored(config: ConfigState, key: str) -> Record | None:
    name = records.connector_of(key)
    if name is None or name not in config.connectors:
        return None
    if key.startswith("connector-"):
        return records.connector_record(name, config.connectors[name], config.identities[name])
    if key.startswith("target-state-"):
        return records.target_record(name, config.target(name))
    count = config.fencing.get(name)
    return None if count is None else records.fencing_record(name, count)
