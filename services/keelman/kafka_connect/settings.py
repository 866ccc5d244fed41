"""The settings of a worker of Apache Kafka Connect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of `keelman kafka_connect`: flags, KEELMAN_KAFKA_CONNECT_*, TOML."""

    home: Path = setting(help="Folder of this worker: its configuration of logs and metrics, and its crashes.")
    properties_file: Path = setting(help="Connect's worker properties (.properties file).")
    url: str = setting(help="The address of its REST API, as in its listeners.")
    libraries: tuple[str, ...] = setting((), "Folders whose jars all of its plugins find.")
    heap_mb: int = setting(1024, "Largest Java heap.", unit="MiB", minimum=128)
    metrics_host: str = setting("127.0.0.1", "Address that its metrics are served on.")
    metrics_port: int = setting(
        0,
        "Port that Connect's own metrics are served on for Prometheus, at /metrics; 0: none.",
        minimum=0,
        maximum=65535,
    )
    jvm_options: tuple[str, ...] = setting((), "More options for the Java virtual machine.")
    start_seconds: float = setting(600.0, "How long the worker may take to answer.", unit="s", minimum=1)
