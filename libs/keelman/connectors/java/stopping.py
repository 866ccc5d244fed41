"""Times of a Java task: how long it may take to stop before its thread is interrupted, and how often it is
notified of a commit where there is none."""

from __future__ import annotations

from collections.abc import Mapping

KEY, DEFAULT_MS = "task.shutdown.graceful.timeout.ms", "5000"
FLUSH_KEY, FLUSH_DEFAULT_MS = "offset.flush.interval.ms", "60000"


def stop_seconds(worker: Mapping[str, str]) -> float:
    """As the worker's properties say, in seconds."""
    return int(worker.get(KEY, DEFAULT_MS)) / 1000


def flush_seconds(worker: Mapping[str, str]) -> float:
    """As the worker's properties say, in seconds."""
    return int(worker.get(FLUSH_KEY, FLUSH_DEFAULT_MS)) / 1000
