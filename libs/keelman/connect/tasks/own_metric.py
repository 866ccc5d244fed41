"""A number that a connector's task counts by itself, for the worker's /metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """`tags` set it apart from others of its name; connector and task are told beside them."""

    name: str
    value: float
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
