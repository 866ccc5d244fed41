"""The keys of every connector that Connect does not have: how fast, how often and where it copies."""

from __future__ import annotations

import math
from typing import Any

from keelman.connect.config_def import ConfigDef, ConfigKey, Importance, Type, Width, at_least
from keelman.connect.config_rules import Validator, refuse
from keelman.connect.connector_keys import numbered
from keelman.model.errors import InvalidArgument
from keelman.model.labels import LEGAL, labels_of

MOST_COMMIT_MS = 600_000
_LOW, _TEXT, _INT, _LONG = Importance.LOW, Type.STRING, Type.INT, Type.LONG
_COPYING: dict[str, Any] = {"group": "Copying", "width": Width.SHORT}


def _limit(name: str, value: float | None) -> None:
    if value is not None and not math.isfinite(value):
        raise refuse(name, value, "Value must be a finite number, at least 0")
    if value is not None:
        at_least(0)(name, value)


def _commit_interval(name: str, value: int | None) -> None:
    if value is not None and not 1 <= value <= MOST_COMMIT_MS:
        raise refuse(name, value, f"Value must be a number of milliseconds between 1 and {MOST_COMMIT_MS}")


def _labels(name: str, value: str | None) -> None:
    try:
        labels_of(value or "", key=name)
    except InvalidArgument:
        raise refuse(name, value, f"Value must be {LEGAL}") from None


COMMIT_INTERVAL = ConfigKey(
    "keelman.commit.interval.ms",
    _LONG,
    500,
    _LOW,
    "Longest time between two commits.",
    validator=_commit_interval,
    **_COPYING,
)
PARK_AFTER = ConfigKey(
    "keelman.park.after.ms",
    _LONG,
    10_000,
    _LOW,
    "Idle time until a task is parked; -1: never.",
    validator=at_least(-1),
    **_COPYING,
)
"""The worker's properties of these two names hold for connectors that do not set them."""


def copying_keys() -> ConfigDef:
    """Ours, of every connector."""
    limit = {"validator": _limit, **_COPYING}
    place = {"validator": _labels, **_COPYING}
    rows = (
        ConfigKey(
            "keelman.limit.records.per.second", Type.DOUBLE, 0, _LOW, "Most records a second; 0 for all.", **limit
        ),
        ConfigKey("keelman.limit.bytes.per.second", Type.DOUBLE, 0, _LOW, "Most bytes a second; 0 for all.", **limit),
        COMMIT_INTERVAL,
        PARK_AFTER,
        ConfigKey("keelman.placement.labels", _TEXT, None, _LOW, "Labels of the workers that may have it.", **place),
    )
    return ConfigDef(*numbered(1, rows))


def splitting_keys(slots: str, most: int, least: str, default: int) -> ConfigDef:
    """Ours, of every source: the names of two keys, the most slots, and the default of the least records."""
    count = {"validator": _whole(most), **_COPYING}
    rows = (
        ConfigKey(slots, _INT, 1, _LOW, "Most slots that a task's backlog is split over; 1: none.", **count),
        ConfigKey(least, _LONG, default, _LOW, "Least records worth splitting.", validator=at_least(1), **_COPYING),
    )
    return ConfigDef(*numbered(5, rows))


def _whole(most: int) -> Validator:
    def check(name: str, value: int | None) -> None:
        if value is not None and not 1 <= value <= most:
            raise refuse(name, value, f"Value must be a whole number, at least 1 and at most {most}")

    return check
