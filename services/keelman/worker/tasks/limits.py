"""How fast a connector may copy: two keys of its configuration that change without a restart."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.api.copy.v1.ticket_pb2 import Limits
from keelman.connect.config.copying_keys import BYTES_LIMIT, RECORDS_LIMIT
from keelman.worker.properties.reader import setting

LIMITS = (RECORDS_LIMIT, BYTES_LIMIT)


def limits_of(config: Mapping[str, str], tasks: int) -> Limits:
    """What one of the connector's tasks may copy; 0 for what is not limited. Raises InvalidArgument."""
    records, size = (setting(key, config) / max(1, tasks) for key in LIMITS)
    return Limits(records_per_second=records, bytes_per_second=size)
