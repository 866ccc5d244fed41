"""The isolation levels of a consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def reads_committed(properties: Mapping[str, Any], default: str = "read_uncommitted") -> bool:
    """Whether it is to see only what is committed, by its `isolation.level`: a property of Java's and librdkafka's."""
    return str(properties.get("isolation.level", default)).strip() == "read_committed"
