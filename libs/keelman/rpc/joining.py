"""Joins this host to an installation: the key is created here, and a gateway has its certificate signed in exchange for
a token."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from keelman.api.access.v1.join_service_pb2 import JoinRequest
from keelman.api.access.v1.join_service_pb2_grpc import JoinServiceStub
from keelman.api.access.v1.join_token_pb2 import JOIN_ROLE_GATEWAY, JOIN_ROLE_NODE
from keelman.model.access.join_token import JoinSecret
from keelman.model.errors import FailedPrecondition, KeelmanError, Unavailable
from keelman.rpc.channels import channel
from keelman.rpc.credentials import Pems
from keelman.rpc.handshake import ask_chain, handshake_problem
from keelman.rpc.identity import GATEWAY_NAME, Identity, IdentityKind
from keelman.rpc.membership import checked_member
from keelman.runtime.tls.certificates import certificate_request, digest_of_der

CALL_SECONDS = 30.0
ROLES = {IdentityKind.NODE: JOIN_ROLE_NODE, IdentityKind.GATEWAY: JOIN_ROLE_GATEWAY}


@dataclass(frozen=True, slots=True)
class JoinedHost:
    """The result of a join: the host's key and certificates, and the address of the state services."""

    pems: Pems
    state_address: str


async def join(address: str, token: JoinSecret, holder: Identity, hosts: Sequence[str], key: bytes) -> JoinedHost:
    """Joins through the gateway at host:port with a private key in PEM, which stays here.

    The gateway is trusted if its CA is that of the token; only then the token is sent. Raises FailedPrecondition
    (OTHER_AUTHORITY) if it is not, Unavailable if the gateway does not answer, refusals of the state service, and the
    errors of `checked_member`.
    """
    authority = await fetch_authority(address, token)
    to_gateway = channel(address, root_certificates=authority, server_name=GATEWAY_NAME, peer="the gateway")
    request = JoinRequest(
        token=token.text,
        name=holder.name,
        certificate_request=certificate_request(key),
        hosts=hosts,
        role=ROLES[holder.kind],
    )
    async with to_gateway as link:
        try:
            answer = await JoinServiceStub(link).Join(request, timeout=CALL_SECONDS)
        except Unavailable as error:
            reason = await handshake_problem(address, Pems(roots=authority), GATEWAY_NAME)
            raise _refused(f"the gateway at {address} is not trusted: {reason}") if reason else error from None
    pems = Pems(answer.certificate.encode(), key, answer.authority.encode())
    return JoinedHost(checked_member(holder, pems, f"the answer of the gateway at {address}"), answer.state_address)


async def fetch_authority(address: str, token: JoinSecret) -> bytes:
    """Returns the CA's certificate, in PEM, of the gateway at host:port, if it is that of the token. Raises
    FailedPrecondition and Unavailable."""
    host, _, port = address.rpartition(":")
    try:
        chain = await ask_chain(host.strip("[]"), int(port))
    except ssl.SSLError as error:
        text = f"what answers at {address} speaks no TLS ({error.reason}): a gateway with trust = installation does"
        raise _refused(text) from None
    except TimeoutError:
        raise _unreachable(address, "no answer in time") from None
    except OSError as error:
        raise _unreachable(address, error.strerror or str(error)) from None
    for certificate in chain:
        if digest_of_der(certificate) == token.authority:
            return ssl.DER_cert_to_PEM_cert(certificate).encode()
    raise _refused(
        f"the server at {address} does not show the CA of the token: it is no gateway of the token's installation, "
        "or the connection is intercepted; the token was not sent"
    )


def own_address(address: str) -> str:
    """Returns the address of this host on its route to host:port; empty if there is no route."""
    host, _, port = address.rpartition(":")
    try:
        family, _, _, _, there = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as udp:  # sends nothing
            udp.connect(there)
            return str(udp.getsockname()[0])
    except OSError:
        return ""


def _refused(text: str) -> FailedPrecondition:
    return FailedPrecondition(text, reason="OTHER_AUTHORITY")


def _unreachable(address: str, reason: str) -> KeelmanError:
    return Unavailable(f"the gateway at {address} cannot be reached: {reason}", reason="UNREACHABLE")
