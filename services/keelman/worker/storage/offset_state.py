"""Folds the offset topic into committed source offsets by connector, raw bytes kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from keelman.connect.offsets import parse_key, parse_value
from keelman.engine.source.split import PLAN
from keelman.worker.storage.config_records import object_of

NO_PARTITION = "its key is not [connector, {source partition}] in JSON"
NO_OFFSET = "its value is no JSON object: the connector has no offset for this partition"


@dataclass(slots=True)
class OffsetState:
    """Built by applying the topic's records."""

    rows: dict[str, dict[bytes, bytes]] = field(default_factory=dict)

    def apply(self, key: bytes, value: bytes | None) -> str:
        """Applies one record. Returns why it was passed over, for its key or for its value; empty for an applied
        one."""
        try:
            parsed = orjson.loads(key)
        except orjson.JSONDecodeError:
            return NO_PARTITION
        if not (isinstance(parsed, list) and len(parsed) == 2 and isinstance(parsed[0], str)):
            return NO_PARTITION
        if not isinstance(parsed[1], dict):
            return NO_PARTITION
        rows = self.rows.setdefault(parsed[0], {})
        rows.pop(key, None)  # the newest last: other bytes may be of the same partition
        if value is None:
            return ""
        rows[key] = value
        return "" if object_of(value) is not None else NO_OFFSET

    def of(self, connector: str) -> list[tuple[bytes, bytes]]:
        """Returns the connector's rows as they are in the topic."""
        return list(self.rows.get(connector, {}).items())


def parsed_rows(rows: Iterable[tuple[bytes, bytes]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns source partitions and offsets of rows as they are in the topic; passes over values that are no offsets,
    and the plan of a split task."""
    rows_read = []
    for key, value in rows:
        parsed, offset = parse_key(key), parse_value(value)
        if parsed is not None and offset is not None and PLAN not in parsed[1]:
            rows_read.append((parsed[1], offset))
    return rows_read
