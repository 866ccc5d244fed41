"""The worker's defaults for the life of connectors: restarts, stalled tasks, and what third-party code may take."""

from __future__ import annotations

from keelman.engine.plugin_memory import SLOT_MEMORY
from keelman.worker.properties.plugin_bounds import read_bounds
from keelman.worker.properties.reader import PropertyReader
from keelman.worker.tasks.restart_policy import policy_of
from keelman.worker.tasks.watermark import stall_seconds


def check_life(reader: PropertyReader) -> None:
    """Notes what is not legal; whoever needs a value reads it where it is needed, the connector's before this one."""
    reader.take(lambda: policy_of({}, reader.raw), None)
    reader.take(lambda: stall_seconds({}, reader.raw), 0.0)
    reader.take(lambda: SLOT_MEMORY.among(reader.raw), None)
    read_bounds(reader)
