"""What the offset topic says: committed source offsets by connector, raw bytes kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from keelman.engine.bulk import PLAN


@dataclass(slots=True)
class OffsetState:
    """Built by applying the topic's records."""

    rows: dict[str, dict[bytes, bytes]] = field(default_factory=dict)

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Applies one record; keys that are not `["connector",{...}]` are passed over."""
        try:
            parsed = orjson.loads(key)
        except orjson.JSONDecodeError:
            return
        if not (isinstance(parsed, list) and len(parsed) == 2 and isinstance(parsed[0], str)):
            return
        rows = self.rows.setdefault(parsed[0], {})
        if value is None:
            rows.pop(key, None)
        else:
            rows[key] = value

    def of(self, connector: str) -> list[tuple[bytes, bytes]]:
        """The connector's rows as they stand in the topic."""
        return list(self.rows.get(connector, {}).items())


def parsed_rows(rows: Iterable[tuple[bytes, bytes]]) -> list[tuple[dict[str, Any], Any]]:
    """Source partitions and offsets of rows as they stand in the topic; what is no JSON, or is the plan of a
    split task, is passed over."""
    found = []
    for key, value in rows:
        try:
            partition = orjson.loads(key)[1]
            if PLAN not in partition:
                found.append((partition, orjson.loads(value)))
        except orjson.JSONDecodeError:
            continue
    return found
