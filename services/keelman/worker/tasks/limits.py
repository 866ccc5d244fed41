"""Reads a connector's rate limits: two keys of its configuration that change without a restart."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from keelman.api.copy.v1.ticket_pb2 import Limits
from keelman.connect.config.copying_keys import BYTES_LIMIT, RECORDS_LIMIT
from keelman.workers.properties.reader import setting

LIMITS = (RECORDS_LIMIT, BYTES_LIMIT)


def limits_of(config: Mapping[str, str], tasks: int) -> Limits:
    """Returns the limits of each task of the connector; 0 for none. Raises InvalidArgument."""
    return _limits(tasks, *(config.get(key.name, "") for key in LIMITS))


@lru_cache(maxsize=64)  # most connectors have the same; no caller changes a message
def _limits(tasks: int, *texts: str) -> Limits:
    settings = dict(zip((key.name for key in LIMITS), texts, strict=True))
    records, size = (setting(key, settings) / max(1, tasks) for key in LIMITS)
    return Limits(records_per_second=records, bytes_per_second=size)
