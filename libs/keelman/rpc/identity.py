"""Identifies the other end of a call by its certificate: a URI among its alternative names, keelman://kind/name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from keelman.rpc.server import Context

SCHEME = "keelman://"
MAX_COMMON_NAME = 64
"""Of X.520, https://datatracker.ietf.org/doc/html/rfc5280#appendix-A.1."""
MAX_CLUSTER = 20
DOMAIN = "keelman.internal"
"""Only certificates of the installation's CA have host names below this domain, whatever a host's name is: a client
that expects its peer's name connects to no other member, even if addresses change."""
_NAMES, _PEM = "x509_subject_alternative_name", "x509_pem_cert"  # of grpc's authentication context, as bytes
_FORM = re.compile(r"keelman://([a-z]+)/([^/?#]+)")


class IdentityKind(StrEnum):
    """The kind of holder that a certificate was issued for."""

    NODE = "node"
    GATEWAY = "gateway"
    STATE = "state"
    USER = "user"
    BROKER = "broker"
    """The brokers of a node, by its name."""
    CLIENT = "client"
    """A process that keelman starts as a client of a broker cluster, by the cluster's name."""
    WORKER = "worker"
    """The workers of a worker cluster, as clients of brokers with access rules and of a Spark cluster's drivers, by the
    cluster's name and uid: CLUSTER.UID."""
    REPORTS = "reports"
    """Writers of reports to a broker cluster with access rules, by its name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of a certificate."""

    kind: IdentityKind
    name: str

    @property
    def uri(self) -> str:
        """The form in the certificate."""
        return f"{SCHEME}{self.kind}/{quote(self.name, safe='')}"

    @property
    def path(self) -> str:
        """The form in tables, logs and metadata: node/n1."""
        return f"{self.kind}/{self.name}"

    @property
    def common_name(self) -> str:
        """The subject's common name in the certificate, at most 64 characters; brokers know a client by it. Of a
        worker cluster's name it has the beginning only, so that its uid has room."""
        cluster, dot, uid = self.name.rpartition(".")
        is_long = self.kind is IdentityKind.WORKER and dot
        path = f"{self.kind}/{cluster[:MAX_CLUSTER]}.{uid}" if is_long else self.path
        return path[:MAX_COMMON_NAME]

    @property
    def principal(self) -> str:
        """The principal of Kafka's brokers for the holder."""
        return f"User:CN={self.common_name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


def identity_in(names: Iterable[str]) -> Identity | None:
    """Returns the identity among a certificate's alternative names; None if there is none of a known kind, or more than
    one, which is ambiguous."""
    identities = [identity for name in names if (identity := _parsed(name)) is not None]
    return identities[0] if len(identities) == 1 else None


def peer_identity(context: Context) -> Identity | None:
    """Returns the identity in a call's client certificate; None without one. The server has verified that a trusted CA
    issued it, but not that the holder may make the call."""
    names = (context.auth_context() or {}).get(_NAMES, ())
    return identity_in(name.decode(errors="replace") for name in names)


def peer_certificate(context: Context) -> bytes:
    """Returns a call's client certificate, in PEM; empty without one."""
    return next(iter((context.auth_context() or {}).get(_PEM, ())), b"")


def server_name(of: Identity) -> str:
    """Returns the host name in a member's certificate by which its clients verify it: a node has its own, since no node
    may answer for another; all gateways share one, and so do all state services."""
    return f"{of.name}.node.{DOMAIN}" if of.kind is IdentityKind.NODE else f"{of.kind}.{DOMAIN}"


GATEWAY_NAME, STATE_NAME = (f"{kind}.{DOMAIN}" for kind in (IdentityKind.GATEWAY, IdentityKind.STATE))


def _parsed(uri: str) -> Identity | None:
    match = _FORM.fullmatch(uri)
    if match is None or match[1] not in set(IdentityKind):
        return None
    name = unquote(match[2], errors="replace")
    return Identity(IdentityKind(match[1]), name) if name.isprintable() else None
