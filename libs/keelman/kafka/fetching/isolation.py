"""The isolation levels of a consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reads_committed(properties: Mapping[str, Any], default: str = "read_uncommitted") -> bool:
    """Whether `isolation.level` allows only committed records: a property of Java's and librdkafka's."""
    return str(properties.get("isolation.level", default)).strip() == "read_committed"
