"""All settings of the gateway."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from keelman.model.rules.names import checked_name, legal_name
from keelman.runtime.home import Home
from keelman.runtime.settings import setting
from keelman.workers.rest.settings import WorkerAccessSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(WorkerAccessSettings):
    """Settings of `keelman gateway`: flags, KEELMAN_GATEWAY_*, TOML."""

    name: str = setting(
        "", "Name of this gateway in its certificate; empty means the host's name, lower-cased and made legal."
    )
    home: Path | None = setting(
        None, "Folder of what this gateway joined with; empty means KEELMAN_HOME, else ~/.keelman."
    )
    host: str = setting(
        "127.0.0.1", "Address of the gRPC server; off loopback it needs TLS, or trust = mesh or installation."
    )
    port: int = setting(7400, "Port of the gRPC server.", minimum=1, maximum=65535)
    http_host: str = setting("127.0.0.1", "Address of the HTTP server, which speaks plain HTTP unless http_tls.")
    http_port: int = setting(7480, "Port of the HTTP server.", minimum=1, maximum=65535)
    http_tls: bool = setting(False, "The HTTP server speaks https, with the certificate of gRPC.")
    access_file: Path | None = setting(
        None,
        "TOML file of the callers: [[token]], [[user]], [[issuer]], [roles], [[key]], [[account]], [[role]] and [tls]; "
        "read again when it changes. Without it all calls are allowed on loopback, and none elsewhere.",
    )
    audit_file: Path | None = setting(
        None,
        "File of the audit beside the state service's: a line of JSON for each call that writes and each that is "
        "refused, with the caller, the address, the call, the resource and the outcome; ten older files of 16 MiB are "
        "kept. Empty: none.",
    )
    free_failures: int = setting(
        200,
        "The number of calls with unknown credentials that one address may make in a minute; each further one is "
        "answered later, up to 5 s. Known callers are never delayed.",
        minimum=1,
    )
    client_port: int = setting(
        0, "Port of a second gRPC server, for callers who show a certificate of client_ca; 0: none.", minimum=0,
        maximum=65535,
    )  # fmt: skip
    client_ca: Path | None = setting(None, "Certificates by which callers at client_port are trusted, a PEM file.")
    open_access: bool = setting(
        False,
        "Allow all calls off loopback without an access_file: the network limits who reaches the gateway.",
    )
    drain_seconds: float = setting(
        0.0,
        "Time after SIGTERM in which it still answers, while its health is NOT_SERVING, so that callers find "
        "another gateway. Part of grace_seconds, and shorter.",
        unit="s",
        minimum=0,
    )
    state_address: str = setting(
        "127.0.0.1:7410",
        "host:port of the state service, or of several with commas between; off loopback it needs state_ca, or trust = "
        "mesh or installation. unix:PATH is a state service of this host.",
    )
    state_ca: Path | None = setting(
        None, "Certificates by which the state service is trusted, a PEM file; with them it is called with TLS."
    )
    agent_ca: Path | None = setting(
        None, "Certificates by which agents are trusted, a PEM file; with them their logs are read with TLS."
    )
    tls_certificate: Path | None = setting(None, "Certificate chain of the gRPC server, a PEM file.")
    tls_key: Path | None = setting(None, "Private key of the gRPC server, a PEM file.")
    trust: str = setting(
        "loopback",
        "The security of gRPC off loopback. mesh: a sidecar, without TLS here. installation: certificates, from the "
        "gateway's join or from a state service at unix:PATH, else tls_certificate, tls_key, state_ca and agent_ca.",
        choices=("loopback", "mesh", "installation"),
    )
    request_seconds: float = setting(
        90.0, "Longest time for one request to a worker or to the state service.", unit="s", minimum=1
    )
    list_seconds: float = setting(
        10.0, "Longest time that one worker cluster may take when all connectors are listed.", unit="s", minimum=0.1
    )
    max_body_bytes: int = setting(
        16 * 1024 * 1024,
        "Largest body of a request to a worker, or in JSON to Ohara's API.",
        unit="bytes",
        minimum=1024,
    )
    ohara: bool = setting(True, "Serve Ohara's REST API at /v0 of the HTTP server.")
    ohara_cover_passwords: bool = setting(False, "Answer ****** in place of the passwords of nodes at /v0/nodes.")
    ohara_wipe_token_file: Path | None = setting(
        None, "File with a token; DELETE /_private with this token deletes all of Ohara's objects."
    )
    managed_connect: bool = setting(
        True, "Serve the managed Connect API, as the AWS SDKs call kafkaconnect, at /v1 of the HTTP server."
    )
    managed_connect_access_file: Path | None = setting(
        None,
        "TOML file of the managed Connect API's access keys, [[key]] with id, secret, account and role, of what "
        "accounts may name, [[account]] with id, secrets and buckets, and of client properties for Kafka: by execution "
        "role, [[role]] with arn and client_properties, and of TLS without IAM, [tls] with client_properties; "
        "access_file may have them all.",
    )
    managed_connect_unsigned: bool = setting(
        False, "Do not verify signatures at the managed Connect API; legal where http_host is on loopback alone."
    )
    managed_connect_account: str = setting(
        "000000000000", "Account of all callers where managed_connect_unsigned is set, 12 digits."
    )
    managed_connect_region: str = setting(
        "us-east-1", "Region of callers that name none, where managed_connect_unsigned is set."
    )
    managed_connect_hosts: tuple[str, ...] = setting(
        (),
        "Host names at which clients reach the managed Connect API: a request that was signed for another host is "
        "refused. Empty: any.",
    )
    managed_connect_max_workers: int = setting(
        0, "So many workers may the connectors of one account have, autoscaled ones at their most; 0: any number.",
        minimum=0,
    )  # fmt: skip
    managed_connect_max_plugins: int = setting(
        0, "So many custom plugins may one account have; 0: any number.", minimum=0
    )
    managed_connect_max_worker_configurations: int = setting(
        0, "So many worker configurations may one account have; 0: any number.", minimum=0
    )
    advertised_http: str = setting(
        "", "host:port at which users reach the HTTP server, for URLs in answers; empty: http_host and http_port."
    )

    @property
    def own_name(self) -> str:
        """The gateway's name. Raises InvalidArgument for a configured name that is not legal."""
        return checked_name("gateway.name", self.name) if self.name else legal_name(socket.gethostname())

    @property
    def folder(self) -> Home:
        """The home folder, with the gateway's files."""
        return Home.of(self.home)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The addresses by which the gateway is reached, for its certificate."""
        advertised = self.advertised_http.rpartition(":")[0].strip("[]")
        hosts = (self.host, self.http_host, advertised, socket.gethostname())
        return tuple(dict.fromkeys(host for host in hosts if host and host not in ("0.0.0.0", "::")))
