"""All settings of the state service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.connect.policy.installations import AUTO, OPEN, STRICT, rules_of
from keelman.model.errors import InvalidArgument
from keelman.model.rules.field_checks import LARGEST_PORT
from keelman.model.workload import joined_address
from keelman.rpc.server import INSTALLATION, LOOPBACK, is_loopback
from keelman.runtime.home import Home
from keelman.runtime.logs.redaction import HIDDEN
from keelman.runtime.settings import setting
from keelman.state.database.key_source import KeyCommand, KeySource
from keelman.workers.rest.settings import WorkerAccessSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(WorkerAccessSettings):
    """Settings of `keelman state`: flags, KEELMAN_STATE_*, TOML."""

    home: Path | None = setting(
        None, "Folder of the system; empty means KEELMAN_HOME, else .keelman in the user's home."
    )
    host: str = setting("127.0.0.1", "Address that gRPC listens on.")
    port: int = setting(7410, "Port of gRPC.", minimum=1, maximum=LARGEST_PORT)
    database: str = setting(
        "",
        "Path of an SQLite file, or postgresql://user:password@host/name; empty means state/state.db under home.",
        secret=True,
    )
    key_file: Path | None = setting(
        None,
        "File with the key that seals passwords in the database, made at the first start; empty means "
        "state/secrets.key under home.",
    )
    key_command: str = setting(
        "",
        "Command, without a shell, that prints this key, in place of a file: 32 random bytes in base64. It runs at "
        "the start and each minute: when it prints another key, everything is sealed with that key.",
        secret=True,
    )
    events_broker_cluster: str = setting("default", "Broker cluster that holds the topics of events and reports.")
    connector_policy: str = setting(
        "auto",
        "What connectors may be, by policy.md: open; strict; auto: strict where this service is open beyond loopback.",
        choices=("auto", "open", "strict"),
    )
    connector_rules: dict[str, str] = setting(
        {}, 'Rules of policy.md over those of connector_policy, as a table: "paths.allowed" = "data,/srv/in".'
    )
    oauth_urls: str = setting(
        "",
        "URLs, separated by commas, from which the state service may request tokens for its own queries of brokers "
        "(OAUTHBEARER); workers have keelman.oauthbearer.allowed.urls.",
    )
    heartbeat_seconds: float = setting(2.0, "How often an agent sends a heartbeat.", unit="s", minimum=0.05)
    session_timeout_seconds: float = setting(
        8.0, "After this long without a heartbeat a node is offline.", unit="s", minimum=0.1
    )
    worker_ports: str = setting("8083-8482", "Ports given to workers on each node: first-last.")
    broker_ports: str = setting("9092-9191", "Ports given to brokers and their controllers on each node: first-last.")
    spark_ports: str = setting("7430-7459", "Ports given to Spark services: first-last.")
    chosen_ports: str = setting(
        "10000-19999",
        "Ports for creates with choose_ports, the same on each node of a cluster: first-last.",
    )
    spark_master: str = setting("local[256,1]", "Spark master of the Spark services.")
    spark_idle_seconds: float = setting(
        60.0,
        "So long a node's Spark service runs on without a worker that needs it: the next worker finds it ready.",
        unit="s",
        minimum=0,
    )
    plugin_storage: str = setting(
        "database",
        "The storage of plugins' files: database; the path of a folder, which every state service of a "
        "PostgreSQL must share; or s3://bucket/prefix.",
    )
    plugin_s3_endpoint: str = setting("", "URL of the S3 server for plugin_storage; empty means AWS.")
    plugin_s3_region: str = setting("", "Region of the bucket; empty means that of AWS_REGION.")
    buckets: str = setting(
        "",
        "Where the buckets are that users name, for the import of plugins and the delivery of logs: the URL of an S3 "
        "server, e.g. https://s3.eu-west-1.amazonaws.com, or the path of a folder whose folders are buckets; empty: "
        "plugins are imported from plugin-store under home, and logs are delivered to none.",
    )
    buckets_region: str = setting("", "Region of that S3 server; empty means that of AWS_REGION.")
    buckets_access_key_id: str = setting("", "Access key for it; empty means that of AWS_ACCESS_KEY_ID.")
    buckets_secret_access_key: str = setting("", "Its secret; empty means that of AWS_SECRET_ACCESS_KEY.", secret=True)
    plugin_max_bytes: int = setting(1 << 30, "Largest file of a plugin.", unit="bytes", minimum=1)
    plugins_max_bytes: int = setting(20 << 30, "All files of plugins together.", unit="bytes", minimum=1)
    operation_wait_seconds: float = setting(
        300.0,
        "For so long a step of an operation is tried again while a cluster cannot be reached or is not ready.",
        unit="s",
        minimum=1,
    )
    operations_kept_seconds: float = setting(
        7 * 86400.0, "An operation is forgotten so long after its end.", unit="s", minimum=0
    )
    operations_kept: int = setting(1000, "The number of ended operations that are kept for each noun.", minimum=0)
    audit_events_kept: int = setting(
        100_000,
        "The number of the gateways' audit events of writes that are kept, and that of refused calls.",
        minimum=1,
    )
    tls_certificate: Path | None = setting(None, "PEM file of the server's certificate chain; empty for no TLS.")
    tls_key: Path | None = setting(None, "PEM file of the certificate's private key.")
    client_ca: Path | None = setting(
        None,
        "PEM file of the CA of agents and gateways, beside tls_certificate: they alone may connect, with certificates "
        "that name them as keelman://node/NAME or keelman://gateway/NAME.",
    )
    trust: str = setting(
        "loopback",
        "Who secures the port off loopback: mesh, a sidecar; installation, a CA that this service keeps in its "
        "database, by which agents and gateways join, unless tls_certificate and client_ca are set.",
        choices=("loopback", "mesh", "installation"),
    )
    advertised_address: str = setting(
        "",
        "Where agents and gateways that join find the state service: host:port, or several with commas between; empty: "
        "host and port.",
    )
    certificate_hours: float = setting(
        720.0,
        "For so long a certificate of the installation's CA is good; it is renewed when two thirds are over.",
        unit="h",
        minimum=0.001,
    )

    drain_seconds: float = setting(
        0.0,
        "Time after SIGTERM in which it still answers, while its health is NOT_SERVING, so that callers find "
        "another gateway. Part of grace_seconds, and shorter.",
        unit="s",
        minimum=0,
    )

    @property
    def secrets_key(self) -> KeySource:
        """The command or the absolute path that gives the key. Raises InvalidArgument if both are set."""
        if self.key_command:
            if self.key_file is not None:
                raise InvalidArgument.of("state.key_command", HIDDEN, "empty where key_file is set")
            return KeyCommand(self.key_command)
        return self.folder.secrets_key if self.key_file is None else self.key_file.expanduser().absolute()

    @property
    def policy_rules(self) -> dict[str, str]:
        """The worker properties of the installation's policy for connectors. Raises InvalidArgument."""
        kind = self.connector_policy
        if kind == AUTO:
            kind = OPEN if self.trust == LOOPBACK and is_loopback(self.host) else STRICT
        return rules_of(kind, self.connector_rules, field="state.connector_rules")

    @property
    def address(self) -> str:
        """The host:port at which others reach this state service."""
        return self.advertised_address or joined_address(self.host, self.port)

    @property
    def socket(self) -> Path | None:
        """The Unix socket on which it listens beside its port, for the gateway of its host; always set with trust =
        installation."""
        if self.health_socket is None and self.trust == INSTALLATION:
            return self.folder.socket("state")
        return self.health_socket

    @property
    def folder(self) -> Home:
        """The home folder."""
        return Home.of(self.home)


def port_range(field: str, text: str) -> range:
    """Parses "first-last" to a range of ports. Raises InvalidArgument, which names the setting."""
    first, dash, last = (part.strip() for part in text.partition("-"))
    if first.isdigit() and last.isdigit() and dash and 1 <= int(first) <= int(last) <= LARGEST_PORT:
        return range(int(first), int(last) + 1)
    raise InvalidArgument.of(field, text, f"first-last with 1 <= first <= last <= {LARGEST_PORT}")
