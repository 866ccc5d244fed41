"""Every knob of the Spark service."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.home import Home
from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of one Spark service."""

    host: str = setting("127.0.0.1", "Address that gRPC listens on and that slots call home to.")
    port: int = setting(7430, "Port that gRPC listens on.", minimum=1, maximum=65535)
    master: str = setting("local[256,1]", "Spark master. Slots are not cores: local[n,1] has room for n slots.")
    node: str = setting("local", "Name of this node; reports come from spark/<node>.")
    work_folder: Path | None = setting(
        None, "Folder for what Spark writes, emptied at each start; empty means workloads/spark under KEELMAN_HOME."
    )
    reports_bootstrap_servers: str = setting(
        "", "Brokers that copy runs are reported to (topic keelman.reports.copy_run.v1); empty reports nothing."
    )
    lease_seconds: float = setting(
        3.0, "A worker that does not renew its lease for this long has its copy runs cut.", unit="s", minimum=0.5
    )
    slots_per_worker: int = setting(0, "Most slots that one worker's tasks share; 0 means one a processor.", minimum=0)
    runs_per_slot: int = setting(64, "Most copy runs in one slot.", minimum=1)
    max_slots: int = setting(64, "Most slots of all workers together.", minimum=1, maximum=250)
    slot_idle_seconds: float = setting(60.0, "An empty slot is kept warm for this long.", unit="s", minimum=0)
    slot_start_timeout_seconds: float = setting(
        60.0, "A slot that has not called home for this long after its start has failed.", unit="s", minimum=1
    )
    slot_beat_timeout_seconds: float = setting(
        5.0, "Slot and service give each other up after this long without a beat.", unit="s", minimum=2
    )
    driver_memory_mb: int = setting(512, "Most heap of Spark's JVM.", unit="MiB", minimum=480)
    grace_seconds: float = setting(
        30.0,
        "On SIGTERM copy runs commit and end within three quarters of this, then they are cut.",
        unit="s",
        minimum=1,
    )

    @property
    def folder(self) -> Path:
        """Where Spark writes."""
        return self.work_folder or Home.default().workload("spark")

    @property
    def shared_slots(self) -> int:
        """Most slots that one worker's tasks share."""
        return self.slots_per_worker or os.cpu_count() or 1
