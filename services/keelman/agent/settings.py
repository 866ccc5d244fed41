"""All settings of the agent."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

from keelman.agent.shipping.shipping import ShippingLimits
from keelman.agent.step import DRAIN_ORDER
from keelman.agent.workloads.process_surroundings import Surroundings, surroundings_for
from keelman.model.errors import InvalidArgument
from keelman.model.rules.names import checked_name, legal_name
from keelman.rpc.server import INSTALLATION, LOOPBACK, MESH, is_loopback
from keelman.runtime.home import Home
from keelman.runtime.logs.parts import Keeping
from keelman.runtime.settings import ProcessSettings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(ProcessSettings):
    """Settings of `keelman agent`: flags, KEELMAN_AGENT_*, TOML."""

    node: str = setting("", "Name of this node; empty means the host's name, lower-cased and made legal.")
    host: str = setting(
        "127.0.0.1",
        "Address that the agent answers gRPC on; off loopback it needs TLS, or trust = mesh or installation.",
    )
    port: int = setting(7420, "Port that the agent answers gRPC on.", minimum=1, maximum=65535)
    advertised_address: str = setting("", "host:port where others reach the agent; empty means host and port.")
    node_address: str = setting(
        "",
        "Address of this node, which its brokers, workers and Spark service listen on and are reached at; empty means "
        "the host of advertised_address. Off loopback it needs trust = mesh, or workload_trust.",
    )
    trust: str = setting(
        "loopback",
        "The security of connections beyond this host. mesh: a sidecar, for the agent and its workloads. "
        "installation: certificates for the agent's gRPC, from its join, else tls_certificate, tls_key and state_ca.",
        choices=("loopback", "mesh", "installation"),
    )
    workload_trust: str = setting(
        "",
        "The security of the workloads' connections beyond this node. mesh: a sidecar, a tunnel or a closed "
        "network. https: none, so off loopback only workers and brokers whose TLS authenticates callers are "
        "started. Empty: as in trust; with installation as https.",
        choices=("", "mesh", "https"),
    )
    tls_certificate: Path | None = setting(None, "Certificate chain of the agent's gRPC server, a PEM file.")
    tls_key: Path | None = setting(None, "Private key of the agent's gRPC server, a PEM file.")
    state_address: str = setting(
        "127.0.0.1:7410",
        "host:port of the state service, or of several with commas between; off loopback it needs state_ca, or trust = "
        "mesh or installation.",
    )
    state_ca: Path | None = setting(
        None, "Certificates by which the state service is trusted, a PEM file; with them it is called with TLS."
    )
    home: Path | None = setting(None, "Folder of this node's files; empty means KEELMAN_HOME, else ~/.keelman.")
    grace_seconds: float = setting(
        40.0, "How long a workload may take to end before it is killed, and the agent itself.", unit="s", minimum=0.1
    )
    drain_on_stop: bool = setting(
        False,
        "Whether SIGTERM stops the workloads in good order before the agent ends; otherwise they keep running. For an "
        "agent in a container, whose end takes its workloads along.",
    )
    settle_seconds: float = setting(
        300.0,
        "The health service named `workloads` serves once all workloads of the started agent run, at the latest after "
        "this time. Rollouts from node to node wait for it.",
        unit="s",
        minimum=0,
    )
    unwell_seconds: float = setting(
        30.0,
        "A Spark service or worker that ran well and then does not answer its health check for so long is killed and "
        "started again; 0 means never.",
        unit="s",
        minimum=0,
    )
    starts_at_once: int = setting(
        0, "How many workers of this node may be starting at once; 0 means two a processor.", minimum=0
    )
    log_bytes: int = setting(
        16 * 1024 * 1024,
        "A workload's log that holds more is cut: its oldest lines become a compressed part.",
        unit="bytes",
        minimum=4096,
    )
    log_parts: int = setting(10, "The number of compressed parts of a workload's log that are kept.", minimum=1)
    log_days: float = setting(
        30.0, "Parts of logs are deleted so many days after they were cut off; 0 means never.", unit="days", minimum=0
    )

    log_root: Path | None = setting(
        None, "Folder below which logs are delivered to files; empty means log-delivery in the home."
    )
    data_root: Path | None = setting(
        None,
        "Folder that contains the data folders which broker clusters name; / allows any folder; empty means "
        "broker-data in the home.",
    )
    log_object_bytes: int = setting(
        8 * 1024 * 1024,
        "A log that is delivered to a bucket is put there as an object once so much of it has come.",
        unit="bytes",
        minimum=1024,
    )
    log_object_seconds: float = setting(
        60.0, "Such an object is put after this long at the latest.", unit="s", minimum=0.1
    )

    plugin_seconds: float = setting(
        3600.0, "Unpacked plugins that no workload of the node has used for so long are deleted.", unit="s", minimum=0
    )

    workload_user: str = setting(
        "", "User that workloads run as, by name or number, where the agent is root; empty means as the agent does."
    )
    broker_user: str = setting(
        "",
        "User that brokers run as, by name or number, where the agent is root: their data is then closed to all other "
        "workloads; empty means as the others do.",
    )
    tenant_users: str = setting(
        "",
        "Numbers of users, as first-last, that no account of the host has: the workloads of each tenant run as one of "
        "them, confined, where the agent is root; empty: tenants are not separated on this node.",
    )
    pass_environment: tuple[str, ...] = setting(
        (),
        "Environment variables that workloads get besides the usual ones, e.g. AWS_*; they get no others.",
    )
    umask: str = setting(
        "022",
        "Permissions that files of workloads do not have, in octal digits; a workload's own folder is closed to others "
        "whatever this is.",
    )

    limits: str = setting(
        "auto",
        "What holds workloads to the limits of memory and processors that their clusters have: control groups (version "
        "2), scopes of systemd, or the agent itself, by polling. auto: the first of these that this host has.",
        choices=("auto", "cgroup", "systemd", "watchdog"),
    )

    @property
    def end_seconds(self) -> float:
        """How long the agent may take to end: with `drain_on_stop` its workloads end first, one kind after another."""
        return self.grace_seconds * (1 + len(DRAIN_ORDER) * self.drain_on_stop)

    @property
    def surroundings(self) -> Surroundings:
        """The user, the environment and the umask of workloads. Raises InvalidArgument."""
        if not re.fullmatch("[0-7]{3,4}", self.umask):
            raise InvalidArgument.of("agent.umask", self.umask, "three octal digits, e.g. 077 or 022")
        if self.tenant_users and self.trust == LOOPBACK:
            legal = "empty, or trust = installation or mesh: else each process of this host may call the agent"
            raise InvalidArgument.of("agent.tenant_users", self.tenant_users, legal)
        return surroundings_for(
            self.workload_user, self.pass_environment, int(self.umask, 8), self.folder, broker_user=self.broker_user,
            tenant_users=self.tenant_users,
        )  # fmt: skip

    @property
    def node_name(self) -> str:
        """The node's name. Raises InvalidArgument for a configured name that is not legal."""
        return checked_name("agent.node", self.node) if self.node else legal_name(socket.gethostname())

    @property
    def address(self) -> str:
        """The host:port at which others reach the agent."""
        return self.advertised_address or f"{self.host}:{self.port}"

    @property
    def workload_address(self) -> str:
        """The host at which the node's workloads are reached, without brackets. Raises InvalidArgument for an address
        that cannot be reached, and for one off loopback without a mesh or TLS."""
        name, host_given = "agent.node_address", self.node_address
        if not host_given:
            name, host_given = "agent.advertised_address", self.address
            host, colon, port = host_given.rpartition(":")
            if not (colon and host and port.isdecimal()):
                raise InvalidArgument.of(name, host_given, "host:port")
            host_given = host
        host = host_given.strip("[]")
        if host in ("0.0.0.0", "::") or any(c.isspace() or c in "/," for c in host):
            raise InvalidArgument.of(name, host_given, "an address or a name at which other hosts reach this one")
        if self.trust_of_workloads not in (MESH, "https") and not is_loopback(host):
            setting = "workload_trust" if self.trust == INSTALLATION else "trust"
            raise InvalidArgument.of(
                name, host_given, f"a loopback address, or any address with {setting} = mesh or workload_trust = https"
            )
        return host

    @property
    def trust_of_workloads(self) -> str:
        """The security of the workloads' connections: mesh, https or loopback."""
        return self.workload_trust or (LOOPBACK if self.trust == INSTALLATION else self.trust)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The addresses by which the agent's host is reached, for its certificate."""
        hosts = (self.address.rpartition(":")[0].strip("[]"), self.node_address.strip("[]"))
        return tuple(dict.fromkeys(host for host in hosts if host and host not in ("0.0.0.0", "::")))

    @property
    def broker_data(self) -> Path:
        """The folder that contains the data folders of brokers."""
        return self.folder.broker_data if self.data_root is None else self.data_root.expanduser().absolute()

    @property
    def log_keeping(self) -> Keeping:
        """The limits for each workload's log: bytes, parts and days."""
        return Keeping(self.log_bytes, self.log_parts, self.log_days)

    @property
    def shipping_limits(self) -> ShippingLimits:
        """The folder and the limits for the delivery of logs."""
        root = self.folder.log_delivery if self.log_root is None else self.log_root.expanduser().absolute()
        return ShippingLimits(root, self.log_object_bytes, self.log_object_seconds, self.log_keeping)

    @property
    def folder(self) -> Home:
        """The home folder, with the node's files."""
        return Home.of(self.home)
