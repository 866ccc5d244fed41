"""Decides which workers may link over the network: those that show their worker cluster's certificate.

Such a port answers links of workers, and nothing else. The APIs for people and for the agent are on the Unix socket,
slots of other hosts have a port of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from keelman.model.errors import InvalidArgument, PermissionDenied, Unauthenticated
from keelman.rpc.credentials import Newest, Tls
from keelman.rpc.identity import Identity, IdentityKind, peer_identity
from keelman.rpc.server import Context
from keelman.spark.settings import Settings


@dataclass(frozen=True, slots=True)
class LinkListener:
    """The port for links over TLS. `tls` follows its files, so that renewed certificates need no restart."""

    host: str
    port: int
    tls: Newest

    @classmethod
    def of(cls, settings: Settings) -> LinkListener | None:
        """Reads the settings; None where links are plain text. Raises InvalidArgument for settings that do not go
        together, and files that cannot be used."""
        files = settings.link_tls_certificate, settings.link_tls_key, settings.link_client_ca
        tls = Tls.of("spark", *files, prefix="link_")
        if tls is None:
            return None
        if tls.client_ca is None:
            legal = "a PEM file: with link_tls_certificate workers are known by their certificates"
            raise InvalidArgument.of("spark.link_client_ca", "", legal)
        if settings.health_socket is None:
            legal = "a path: with link_tls_certificate the port answers links of workers only"
            raise InvalidArgument.of("spark.health_socket", "", legal)
        if not settings.port:
            raise InvalidArgument.of("spark.port", 0, "1 to 65535: with link_tls_certificate workers link to it")
        return cls(settings.host, settings.port, tls.newest("spark", prefix="link_"))


def check_worker(context: Context, worker_cluster: str) -> None:
    """Raises Unauthenticated for a link without a certificate of a worker cluster, and PermissionDenied where it is not
    that of the `worker_cluster` in the greeting. The server has verified that the installation's CA issued it."""
    identity = peer_identity(context)
    if identity is None or identity.kind is not IdentityKind.WORKER:
        shown = "no certificate of keelman's" if identity is None else f"the certificate of {identity}"
        raise Unauthenticated(f"a worker links with its worker cluster's certificate, and this is {shown}")
    if worker_cluster_of(identity) != worker_cluster:
        raise PermissionDenied(
            f"the certificate is of {identity}, which may not link as a worker of worker cluster {worker_cluster!r}",
            metadata={"worker_cluster": worker_cluster},
        )


def worker_cluster_of(identity: Identity) -> str:
    """Returns the name of the worker cluster in CLUSTER.UID."""
    return identity.name.rpartition(".")[0]
