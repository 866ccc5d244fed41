"""Every knob of a worker that is not in its Connect properties file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.settings import setting


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of `keelman worker`: flags, KEELMAN_WORKER_*, TOML."""

    properties_file: Path = setting(help="Connect's distributed worker properties (.properties file).")
    worker_cluster: str = setting("", "Name of the worker cluster in keelman; empty means its group.id.")
    spark_address: str = setting("127.0.0.1:7430", "host:port of the Spark service that runs this worker's tasks.")
    reports_bootstrap_servers: str = setting("", "Brokers that this worker's reports go to; empty means no reports.")
    health_socket: Path | None = setting(None, "Unix socket for gRPC health and reflection; empty serves none.")
    grace_seconds: float = setting(30.0, "How long draining may take, all in all.", unit="s", minimum=1)
    log_level: str = setting("info", "Least severe records to log.", choices=("debug", "info", "warning", "error"))
    log_json: bool = setting(False, "Log records as JSON, one a line.")
