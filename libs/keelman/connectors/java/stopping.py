"""How long a Java task may take to stop before its thread is interrupted."""

from __future__ import annotations

from collections.abc import Mapping

KEY, DEFAULT_MS = "task.shutdown.graceful.timeout.ms", "5000"


def stop_seconds(worker: Mapping[str, str]) -> float:
    """As the worker's properties say, in seconds."""
    return int(worker.get(KEY, DEFAULT_MS)) / 1000
