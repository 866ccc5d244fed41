"""How often a copy run commits, by the configurations of its worker and its connector."""

from __future__ import annotations

from collections.abc import Mapping

from keelman.connect.config.copying_keys import COMMIT_INTERVAL

FLUSH_KEY = "offset.flush.interval.ms"
DEFAULT_INTERVAL_MS = "60000"


def commit_interval_seconds(worker: Mapping[str, str], connector: Mapping[str, str]) -> float:
    """Returns `keelman.commit.interval.ms` of the connector, else of the worker, else 500 ms. Raises
    ConfigValueError."""
    interval: int = COMMIT_INTERVAL.among(connector, worker)
    return interval / 1000


def flush_seconds(worker: Mapping[str, str], connector: Mapping[str, str]) -> float:
    """The time between two commits of a task of Kafka Connect's: the worker's `offset.flush.interval.ms`, unless
    `keelman.commit.interval.ms` is set. Raises ConfigValueError."""
    if any(config.get(COMMIT_INTERVAL.name, "").strip() for config in (connector, worker)):
        return commit_interval_seconds(worker, connector)
    return int(worker.get(FLUSH_KEY, "").strip() or DEFAULT_INTERVAL_MS) / 1000
