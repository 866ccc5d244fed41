"""The settings of a managed broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of `keelman broker`: flags, KEELMAN_BROKER_*, TOML."""

    home: Path = setting(help="Folder of this broker's data, configuration and logs, which outlives restarts.")
    host: str = setting("127.0.0.1", "Address that the broker listens on.")
    port: int = setting(9092, "Port for clients and for the other brokers.", minimum=1, maximum=65535)
    controller_port: int = setting(9093, "Port that it listens on as a controller.", minimum=1, maximum=65535)
    advertised: str = setting("", "host:port that clients connect to; empty means host and port.")
    node_id: int = setting(1, "Number of this broker in its cluster; it stays with the data.", minimum=0)
    cluster_id: str = setting("", "Id of the Kafka cluster (22 characters); empty: the folder's, or a new one.")
    controller: bool = setting(True, "It is one of the cluster's controllers; else a broker only, and voters has them.")
    voters: tuple[str, ...] = setting((), "The controllers as id@host:controller_port; empty: this broker alone.")
    replicas: int = setting(
        0,
        "Replicas of topics that are created without a number; 0: one on each controller. 1 is for a broker alone.",
        minimum=0,
    )
    metrics_port: int = setting(
        0, "Port that Kafka's own metrics are served on for Prometheus, at /metrics; 0: none.", minimum=0, maximum=65535
    )
    data_folders: tuple[str, ...] = setting((), "Folders of its partitions, its alone; empty: one in its home.")
    heap_mb: int = setting(512, "Largest Java heap.", unit="MiB", minimum=128)
    properties: dict[str, str] = field(
        default_factory=dict, metadata={"help": "More broker properties, over the defaults set here.", "secret": True}
    )
    tls_keystore: Path | None = setting(
        None,
        "PEM file of the broker's private key (PKCS#8) and its certificates, for the addresses by which it is reached; "
        "with it all listeners speak TLS. It is read again when it changes.",
    )
    tls_truststore: Path | None = setting(
        None, "PEM file of the CA of all brokers, controllers and clients; it is read again when it changes."
    )
    client_certificates: bool = setting(False, "With TLS, clients must show a certificate of tls_truststore's CA.")
    jvm_options: tuple[str, ...] = setting((), "More options for the Java virtual machine.")
    start_seconds: float = setting(
        300.0,
        "How long the broker may take to answer; after a start that took longer, the next one may take twice as long.",
        unit="s",
        minimum=1,
    )
