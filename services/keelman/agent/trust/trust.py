"""Decides whom the agent trusts and what it shows: its certificate to state services, and who may make which calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import InvalidArgument, KeelmanError, PermissionDenied, Unavailable
from keelman.rpc.channels import Channel, channel, checked_peer, root_certificates
from keelman.rpc.credentials import Newest, PemFiles, Pems, Tls
from keelman.rpc.handshake import handshake_problem
from keelman.rpc.identity import STATE_NAME, Identity, IdentityKind, peer_identity
from keelman.rpc.membership import Member, MemberFolder, renewing
from keelman.rpc.server import INSTALLATION, Authorize, Context, is_local
from keelman.runtime.logs.logging import get_logger

log = get_logger()
ASKERS = frozenset({IdentityKind.GATEWAY, IdentityKind.STATE})


def _nothing() -> Pems:
    return Pems()


@dataclass(frozen=True, slots=True)
class StateLink:
    """Connects to state services: in plain text where there is no CA to trust them by. `server_name` is the name that
    their certificates must have, the address's host when empty."""

    newest: Newest = _nothing
    server_name: str = ""

    def channel(self, address: str) -> Channel:
        """Opens a channel to host:port, with the present certificate."""
        pems = self.newest()
        return channel(address, root_certificates=pems.roots or None, client=pems, server_name=self.server_name)

    async def problem(self, address: str, error: KeelmanError) -> str:
        """Returns the TLS problem behind an error; empty where it is not TLS."""
        pems = self.newest()
        if not isinstance(error, Unavailable) or not pems.roots or address.startswith("unix:"):
            return ""
        reason = await handshake_problem(address, pems, self.server_name)
        return reason and f"the state service at {address} and this agent do not trust each other: {reason}"


@dataclass(frozen=True, slots=True)
class AgentTrust:
    """The credentials and rules of the agent's server and its links to state services; `member` has its certificate
    renewed."""

    tls: Tls | Newest | None
    link: StateLink
    authorize: Authorize | None = None
    member: Member | None = None

    @classmethod
    def of(
        cls,
        node: str,
        tls: Tls | None,
        folder: MemberFolder,
        *,
        trust: str,
        state_address: str,
        state_ca: Path | None,
        hosts: Sequence[str],
    ) -> AgentTrust:
        """Returns the trust of a node's agent. `tls` is the certificate that its settings name, `folder` holds the
        certificate that it has got by joining, whose renewals are for `hosts`; the others are settings.

        Raises InvalidArgument and FailedPrecondition for files that cannot be used.
        """
        if trust != INSTALLATION:
            roots = root_certificates("agent.state_ca", state_ca)
            checked_peer("agent.state_address", state_address, ca="state_ca", certificates=roots, trust=trust)
            return cls(tls, _plain_link(roots, tls))
        if tls is not None or state_ca is not None:
            if tls is None or state_ca is None:
                missing = "tls_certificate" if tls is None else "state_ca"
                raise InvalidArgument.of(
                    f"agent.{missing}", "", "a PEM file: with trust = installation tls_certificate, tls_key and "
                    "state_ca go together; without them the agent uses the certificate of its join",
                )  # fmt: skip
            files = PemFiles("agent", tls.certificate, tls.key, state_ca)
            return cls(files.newest, StateLink(files.newest), askers)
        member = renewing(Identity(IdentityKind.NODE, node), folder, state_address, hosts)
        return cls(member.newest, StateLink(member.newest, STATE_NAME), askers, member)


async def askers(method: str, context: Context) -> None:
    """Lets gateways, state services and all callers on this host call the agent; raises PermissionDenied for others."""
    caller = None if is_local(context) else peer_identity(context)
    if is_local(context) or (caller is not None and caller.kind in ASKERS):
        return
    who = "a certificate without a name" if caller is None else str(caller)
    error = PermissionDenied(f"{who} may not call {method} of an agent: call a gateway", reason="NOT_ALLOWED")
    log.warning("call_refused", method=method, peer=context.peer(), reason=error.reason, error=error.message)
    raise error


def _plain_link(roots: bytes | None, tls: Tls | None) -> StateLink:
    """Returns a link that trusts a state service by its CA, and shows the certificate of the agent's own server, if it
    has one, to a state service that requests any."""
    if roots is None:
        return StateLink()
    shown = _nothing if tls is None else tls.newest("agent")

    def newest() -> Pems:
        pems = shown()
        return Pems(pems.chain, pems.key, roots)

    return StateLink(newest)
