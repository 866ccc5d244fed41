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
DOMAIN = "keelman.internal"
"""Host names below it stand in certificates of the installation's CA alone, whatever a host is called: a client that
asks for the one of its peer talks to no other member, also where addresses change."""
_NAMES, _PEM = "x509_subject_alternative_name", "x509_pem_cert"  # of grpc's authentication context, as bytes
_FORM = re.compile(r"keelman://([a-z]+)/([^/?#]+)")


class IdentityKind(StrEnum):
    """The kind of holder that a certificate was made for."""

    NODE = "node"
    GATEWAY = "gateway"
    STATE = "state"
    USER = "user"
    BROKER = "broker"
    """The brokers of a node, by its name."""
    CLIENT = "client"
    """Who keelman starts that asks the brokers of a broker cluster, by its name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of a certificate."""

    kind: IdentityKind
    name: str

    @property
    def uri(self) -> str:
        """As it stands in the certificate."""
        return f"{SCHEME}{self.kind}/{quote(self.name, safe='')}"

    @property
    def path(self) -> str:
        """As it stands in tables, logs and metadata: node/n1."""
        return f"{self.kind}/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"


def identity_in(names: Iterable[str]) -> Identity | None:
    """The identity among a certificate's alternative names; None where there is none of a known kind, or more than
    one, since then it says nothing."""
    found = [one for name in names if (one := _parsed(name)) is not None]
    return found[0] if len(found) == 1 else None


def peer_identity(context: Context) -> Identity | None:
    """Whose client certificate came with a call; None without one. The server has checked that it is of a CA that it
    trusts, and not that it may do what it asks for."""
    names = (context.auth_context() or {}).get(_NAMES, ())
    return identity_in(name.decode(errors="replace") for name in names)


def peer_certificate(context: Context) -> bytes:
    """The client certificate that came with a call, in PEM; empty without one."""
    return next(iter((context.auth_context() or {}).get(_PEM, ())), b"")


def server_name(of: Identity) -> str:
    """The host name in a member's certificate by which its clients know it: its own of a node, since none may answer
    for another; of all gateways, and of all state services, the same."""
    return f"{of.name}.node.{DOMAIN}" if of.kind is IdentityKind.NODE else f"{of.kind}.{DOMAIN}"


GATEWAY_NAME, STATE_NAME = (f"{kind}.{DOMAIN}" for kind in (IdentityKind.GATEWAY, IdentityKind.STATE))


def _parsed(uri: str) -> Identity | None:
    found = _FORM.fullmatch(uri)
    if found is None or found[1] not in set(IdentityKind):
        return None
    name = unquote(found[2], errors="replace")
    return Identity(IdentityKind(found[1]), name) if name.isprintable() else None
