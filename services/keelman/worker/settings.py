"""Every knob of a worker that is not in its Connect properties file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of `keelman worker`: flags, KEELMAN_WORKER_*, TOML."""

    properties_file: Path = setting(help="Connect's distributed worker properties (.properties file).")
    worker_cluster: str = setting("", "Name of the worker cluster in keelman; empty means its group.id.")
    spark_address: str = setting("127.0.0.1:7430", "host:port of the Spark service that runs this worker's tasks.")
    reports_bootstrap_servers: str = setting("", "Brokers that this worker's reports go to; empty means no reports.")
