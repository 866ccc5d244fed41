"""How fast a connector may copy: two keys of its configuration that change, like some others, without a restart."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.copy.v1.ticket_pb2 import Limits
from keelman.connect.copying_keys import BYTES_LIMIT, LABELS, RECORDS_LIMIT
from keelman.connect.life_keys import life_keys
from keelman.worker.property_reader import setting

LIMITS = (RECORDS_LIMIT, BYTES_LIMIT)
UNFELT = frozenset(key.name for key in (*LIMITS, LABELS, *life_keys().keys.values()))


def without_limits(config: Mapping[str, str]) -> Mapping[str, str]:
    """The configuration less what no task feels: the rest decides whether tasks have to be configured anew."""
    if not UNFELT.isdisjoint(config):
        return {k: v for k, v in config.items() if k not in UNFELT}
    return config


def limits_of(config: Mapping[str, str], tasks: int) -> Limits:
    """What one of the connector's tasks may copy; 0 for what is not limited. Raises InvalidArgument."""
    records, size = (setting(key, config) / max(1, tasks) for key in LIMITS)
    return Limits(records_per_second=records, bytes_per_second=size)
