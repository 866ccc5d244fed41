"""All settings of a worker that are not in its Connect properties file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import InvalidArgument
from keelman.rpc.credentials import Newest, PemFiles
from keelman.runtime.http.local_peers import LocalPeers
from keelman.runtime.http.server import Admits, all_peers
from keelman.runtime.processes.users import users_range
from keelman.runtime.settings import ProcessSettings, setting
from keelman.worker.intervals import SPARK_AWAY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of `keelman worker`: flags, KEELMAN_WORKER_*, TOML."""

    properties_file: Path | None = setting(None, "Connect's worker properties (.properties file).")
    properties: dict[str, str] = setting({}, "Worker properties over those of the file.", secret=True)
    standalone: bool = setting(False, "Run alone, like connect-standalone: without a group and without own topics.")
    connector_files: tuple[str, ...] = setting(
        (), "Connectors that a standalone worker begins with: .properties or JSON files."
    )
    post_config: bool = setting(
        False, "POST /connectors/x/config does what PUT does, as for a worker that was started with short flags."
    )
    member_file: Path | None = setting(
        None, "File in which the worker notes its place in the group, for the farewell when it dies; empty for none."
    )
    brokers_file: Path | None = setting(
        None,
        "File with the reason why the worker cannot reach its brokers or Spark service, for its agent; empty for none.",
    )
    worker_cluster: str = setting("", "Name of the worker cluster in keelman; empty means its group.id.")
    plugins: dict[str, str] = setting(
        {}, "Folders below plugin.path that are plugins of the worker cluster, and their names; its agent sets them."
    )
    routes: dict[str, str] = setting(
        {}, "Addresses of host names that slots have for themselves, as this worker has; its agent sets them."
    )
    refused_users: str = setting(
        "",
        "Numbers of users, as first-last, whose connections from this host are refused, but for its own user's; its "
        "agent sets the users of the node's tenants.",
    )
    limit_cpus: float = setting(
        0.0, "Processors that its agent holds it to with its slots, for metrics; 0: those of the host.", minimum=0
    )
    limit_memory_bytes: int = setting(
        0, "Memory that its agent holds it to, for metrics; 0: that of the host.", unit="bytes", minimum=0
    )
    spark_address: str = setting(
        "",
        "host:port of the Spark service that runs this worker's tasks, or of several with commas between, of which the "
        "first that answers does; empty has one started beside the worker.",
    )
    spark_tls_certificate: Path | None = setting(
        None, "Certificate chain of the worker cluster, a PEM file: with it links to Spark services are mutual TLS."
    )
    spark_tls_key: Path | None = setting(None, "Private key of this certificate, a PEM file.")
    spark_ca: Path | None = setting(None, "Certificates of the CAs of Spark services, a PEM file.")
    spark_away_seconds: float = setting(
        SPARK_AWAY_SECONDS,
        "For so long the Spark service may be away before the worker gives its tasks to other workers of its group.",
        unit="seconds",
        minimum=0,
    )
    reports_bootstrap_servers: str = setting("", "Brokers that this worker's reports go to; empty means no reports.")
    reports_properties_file: Path | None = setting(
        None, "Client properties, named as in Java, with which these brokers are reached: a .properties file."
    )
    home: Path | None = setting(
        None,
        "Folder for what the worker and its Spark write; empty means KEELMAN_HOME, else .keelman in the user's home.",
    )

    @property
    def link_credentials(self) -> Newest | None:
        """The credentials of links to Spark services, which follow their files; None for links in plain text. Raises
        InvalidArgument for files that cannot be used, or some without the others."""
        files = {
            "spark_tls_certificate": self.spark_tls_certificate,
            "spark_tls_key": self.spark_tls_key,
            "spark_ca": self.spark_ca,
        }
        if not any(files.values()):
            return None
        if missing := [name for name, file in files.items() if file is None]:
            raise InvalidArgument.of(f"worker.{missing[0]}", "", f"a PEM file: {', '.join(files)} go together")
        certificate, key, roots = (Path(str(file)) for file in files.values())
        return PemFiles("worker", certificate, key, roots, roots_setting="spark_ca", prefix="spark_").newest

    @property
    def admits(self) -> Admits:
        """Whose connections the listeners take. Raises InvalidArgument."""
        if not self.refused_users:
            return all_peers
        return LocalPeers(users_range("worker.refused_users", self.refused_users)).admits
