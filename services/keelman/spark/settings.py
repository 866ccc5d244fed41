"""All settings of the Spark service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.home import Home
from keelman.runtime.processes.processors import processors
from keelman.runtime.settings import setting
from keelman.spark.master_settings import MasterSettings
from keelman.spark.slots.choice import SlotLimits
from keelman.spark.slots.pool import Times

SHARED_SLOTS = 4
WARM_A_PROCESSOR = 4
CORES_A_WARM_SLOT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(MasterSettings):
    """Settings of one Spark service."""

    host: str = setting("127.0.0.1", "Address that gRPC listens on and that slots call home to.")
    port: int = setting(
        7430, "Port that gRPC listens on; 0: none, workers and slots come by health_socket.", minimum=0, maximum=65535
    )
    trust: str = setting(
        "loopback",
        "Who secures gRPC off loopback: with mesh a sidecar does, else the host must be a loopback address.",
        choices=("loopback", "mesh"),
    )
    link_tls_certificate: Path | None = setting(
        None,
        "Certificate chain of host and port, a PEM file: with it the port answers links of workers only, which need a "
        "certificate of their worker cluster. The other APIs are then on health_socket.",
    )
    link_tls_key: Path | None = setting(None, "Private key of host and port, a PEM file.")
    link_client_ca: Path | None = setting(None, "Certificates of the CAs of workers' certificates, a PEM file.")
    node: str = setting("local", "Name of this node; reports come from spark/<node>.")
    work_folder: Path | None = setting(
        None, "Folder for what Spark writes, emptied at each start; empty means workloads/spark under KEELMAN_HOME."
    )
    reports_bootstrap_servers: str = setting(
        "", "Brokers that copy runs are reported to (topic keelman.reports.copy_run.v1); empty reports nothing."
    )
    reports_properties_file: Path | None = setting(
        None, "Client properties, named as in Java, with which these brokers are reached: a .properties file."
    )
    reach_file: Path | None = setting(
        None, "File in which the service notes for its agent why slots wait; empty notes nothing."
    )
    lease_seconds: float = setting(
        3.0, "A worker that does not renew its lease for this long has its copy runs cut.", unit="s", minimum=0.5
    )
    slots_per_worker: int = setting(
        0,
        "Most slots that one worker's tasks share; 0 means one a processor (on a cluster: one a core that the service "
        "may have there), four at most.",
        minimum=0,
    )
    runs_per_slot: int = setting(256, "Most copy runs in one shared slot.", minimum=1)
    busy_slots_per_worker: int = setting(
        0, "Most slots of their own that one worker's busy tasks get; 0 means one a processor or core.", minimum=0
    )
    busy_bytes_per_second: float = setting(
        4e6,
        "A task that copies this much for three seconds in a shared slot moves to its own slot; 0 means never.",
        unit="bytes/s",
        minimum=0,
    )
    warm_slots: bool = setting(True, "Each worker has an empty slot ready, so that a copy run need not wait for one.")
    max_warm_slots: int = setting(
        0,
        "Most empty slots that are ready so, of all workers that copied last; 0 means four a processor or, where an "
        "empty slot holds a core of a cluster, one for four cores.",
        minimum=0,
    )
    max_slots: int = setting(64, "Most slots of all workers together.", minimum=1, maximum=250)
    slot_idle_seconds: float = setting(60.0, "The time for which an empty slot stays warm.", unit="s", minimum=0)
    slot_start_timeout_seconds: float = setting(
        60.0, "A slot that has not called home for this long after its start has failed.", unit="s", minimum=1
    )
    slot_beat_timeout_seconds: float = setting(
        5.0, "Slot and service give each other up after this long without a beat.", unit="s", minimum=2
    )
    driver_memory_mb: int = setting(512, "Most heap of Spark's JVM.", unit="MiB", minimum=480)
    cluster: str = setting("", "Name of the Spark cluster whose driver this is; empty for a node's service.")
    standby: bool = setting(
        False,
        "Serve without a Spark application until a worker links: for a driver of a Spark cluster, of which there are "
        "several.",
    )
    standby_idle_seconds: float = setting(
        60.0, "A standby ends its application after this time without workers.", unit="s", minimum=1
    )
    grace_seconds: float = setting(
        30.0,
        "On SIGTERM copy runs commit and end within three quarters of this, then they are cut.",
        unit="s",
        minimum=1,
    )

    @property
    def folder(self) -> Path:
        """The folder that Spark writes to."""
        return self.work_folder or Home.default().workload("spark")

    @property
    def times(self) -> Times:
        """The time-outs of leases and slots."""
        return Times(
            self.lease_seconds,
            self.slot_beat_timeout_seconds,
            self.slot_idle_seconds,
            self.slot_start_timeout_seconds,
        )

    def limits(self, cores: int | None = None) -> SlotLimits:
        """Returns the limits for the numbers of slots and copy runs. `cores` are those that a cluster's executors may
        have for this service, one for each slot; None: slots run on this host's processors, which they share."""
        have = processors() if cores is None else cores
        warm = WARM_A_PROCESSOR * have if cores is None else max(1, cores // CORES_A_WARM_SLOT)
        return SlotLimits(
            # More would cost memory and gain little: busy tasks have slots of their own.
            slots_per_worker=self.slots_per_worker or min(have, SHARED_SLOTS),
            runs_per_slot=self.runs_per_slot,
            max_slots=self.max_slots if cores is None else min(self.max_slots, cores),
            busy_slots=self.busy_slots_per_worker or have,
            warm=self.warm_slots,
            max_warm=self.max_warm_slots or warm,
        )
