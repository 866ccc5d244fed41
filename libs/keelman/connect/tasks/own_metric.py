"""A number that a connector's task counts by itself, for the worker's /metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEGAL = "a number as its value, and texts as its name, description and tags"


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """`tags` distinguish it from others of its name; connector and task are reported beside them."""

    name: str
    value: float
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


def is_legal(metric: object) -> bool:
    """Whether a connector's result is a metric as described by LEGAL."""
    if (
        not isinstance(metric, OwnMetric)
        or not hasattr(metric.value, "__float__")
        or not isinstance(metric.tags, Mapping)
    ):
        return False
    return all(isinstance(name, str) for name in (metric.name, metric.description, *metric.tags, *metric.tags.values()))
