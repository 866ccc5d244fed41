"""How fast a connector may copy: two keys of its configuration that change, like some others, without a restart."""

from __future__ import annotations

import math
from collections.abc import Mapping

from keelman.api.copy.v1.ticket_pb2 import Limits
from keelman.model.errors import InvalidArgument
from keelman.worker import placement, restart_policy, watermark

RECORDS = "keelman.limit.records.per.second"
BYTES = "keelman.limit.bytes.per.second"
KEYS = (RECORDS, BYTES)
UNFELT = frozenset((*KEYS, placement.CONNECTOR_KEY, *restart_policy.KEYS, *watermark.KEYS))


def without_limits(config: Mapping[str, str]) -> Mapping[str, str]:
    """The configuration less what no task feels: the rest decides whether tasks have to be configured anew."""
    if not UNFELT.isdisjoint(config):
        return {k: v for k, v in config.items() if k not in UNFELT}
    return config


def limits_of(config: Mapping[str, str], tasks: int) -> Limits:
    """What one of the connector's tasks may copy; 0 for what is not limited. Raises InvalidArgument."""
    records, size = (_limit(config, key) / max(1, tasks) for key in KEYS)
    return Limits(records_per_second=records, bytes_per_second=size)


def _limit(config: Mapping[str, str], key: str) -> float:
    text = config.get(key, "").strip()
    if not text:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgument.of(key, text, "a number, at least 0 (no limit)")
    return value
