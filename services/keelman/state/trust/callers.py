"""Decides who may call which method: agents those for their own node, gateways the rest, users only through
gateways."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from keelman.model.errors import KeelmanError, PermissionDenied, Unauthenticated, Unavailable
from keelman.rpc.identity import Identity, IdentityKind, peer_certificate, peer_identity
from keelman.rpc.server import Context, is_local
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.certificates import CertificateFacts, certificate_facts, shown_time
from keelman.state.trust.members import Members

log = get_logger()
SESSION = "/keelman.api.node.v1.SessionService/OpenSession"
RENEW = "/keelman.api.access.v1.CertificateService/RenewCertificate"
ISSUE = "/keelman.api.access.v1.CertificateService/IssueGatewayCertificate"
LOOK = "/keelman.api.access.v1.CertificateService/LookUpAuthority"
BROKER = "/keelman.api.access.v1.CertificateService/IssueBrokerCertificate"
OF_AGENTS = frozenset({SESSION, RENEW, BROKER, LOOK, "/keelman.api.connect.v1.PluginService/DownloadPlugin"})
LOOK_SECONDS = 5.0
NOT_OF_GATEWAYS = frozenset({SESSION, ISSUE, BROKER})
Check = Callable[[str], Awaitable[None]]
"""Raises PermissionDenied for a node name that is not the caller's."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with a client certificate."""

    identity: Identity
    pem: bytes

    @property
    def facts(self) -> CertificateFacts:
        """The certificate's content."""
        return certificate_facts(self.pem)


def caller_of(context: Context) -> Caller | None:
    """Returns the caller; None if the call came by the Unix socket. Raises PermissionDenied for a certificate that
    names no member."""
    if is_local(context):
        return None
    identity = peer_identity(context)
    if identity is None:
        raise PermissionDenied(
            "the client's certificate is of no member: among its alternative names it has to have one URI "
            "keelman://node/NAME or keelman://gateway/NAME",
            reason="NO_IDENTITY",
        )
    return Caller(identity, peer_certificate(context))


@dataclass(frozen=True, slots=True)
class CallerCheck:
    """Refuses calls by their client certificates. `members` is None if users supply the certificates themselves."""

    members: Members | None
    _known: dict[tuple[str, str], float] = field(default_factory=dict)
    """When a member was last looked up, by its path and its key's digest."""

    async def authorize(self, method: str, context: Context) -> None:
        """Raises PermissionDenied for a method that the caller may not call, and Unauthenticated for a certificate that
        ended while its connection was open."""
        try:
            await self._authorize(method, context)
        except (PermissionDenied, Unauthenticated) as error:
            log.warning("call_refused", method=method, peer=context.peer(), reason=error.reason, error=error.message)
            raise

    async def _authorize(self, method: str, context: Context) -> None:
        caller = caller_of(context)
        if caller is None:
            return
        match caller.identity.kind:
            case IdentityKind.NODE if method in OF_AGENTS:
                pass
            case IdentityKind.GATEWAY if method not in NOT_OF_GATEWAYS:
                pass
            case IdentityKind.STATE if method not in NOT_OF_GATEWAYS:
                pass
            case _:
                raise PermissionDenied(
                    f"{caller.identity} may not call {method} of the state service",
                    reason="NOT_ALLOWED",
                    metadata={"caller": caller.identity.path, "method": method},
                )
        if caller.facts.end <= datetime.now(UTC):
            raise ended(caller)
        if self.members is not None and not self.members.present.value.trusts(caller.pem):
            raise Unauthenticated(
                f"the certificate of {caller.identity} is of a CA that was replaced: open the connection with a "
                "renewed one, or join again",
                reason="AUTHORITY_REPLACED",
            )
        if self.members is not None and caller.identity.kind is not IdentityKind.STATE:
            await self._look_up(self.members, caller, at_once=caller.identity.kind is IdentityKind.NODE)

    async def _look_up(self, members: Members, caller: Caller, *, at_once: bool) -> None:
        """Raises PermissionDenied for a certificate that no longer has its name. Gateways, which call often, are looked
        up every few seconds, and are still answered while the database is away."""
        key = caller.identity.path, caller.facts.key_digest
        seen = self._known.get(key)
        if not at_once and seen is not None and time.monotonic() - seen < LOOK_SECONDS:
            return
        try:
            await members.check(caller.identity, caller.facts.key_digest)
        except PermissionDenied:
            self._known.pop(key, None)
            raise
        except Unavailable:
            if seen is None:
                raise
        self._known[key] = time.monotonic()

    def of_session(self, context: Context) -> tuple[Check, float | None, KeelmanError]:
        """Returns three values: the check of a session's registration; the seconds until its certificate ends, None for
        never; and the error to raise then."""
        caller = caller_of(context)
        if caller is None:
            return anybody, None, Unauthenticated("")
        certain = caller

        async def check(node: str) -> None:
            if certain.identity != Identity(IdentityKind.NODE, node):
                error = PermissionDenied(
                    f"registration.node: {node!r} is not the node of the certificate, which is of {certain.identity}",
                    reason="NOT_OWN_NAME",
                    metadata={"node": node, "certificate": certain.identity.path},
                )
                log.warning("session_refused", node=node, reason=error.reason, error=error.message)
                raise error

        return check, max(0.0, (caller.facts.end - datetime.now(UTC)).total_seconds()), ended(caller)


def ended(caller: Caller) -> Unauthenticated:
    """Returns the error for a certificate that has ended."""
    return Unauthenticated(
        f"the certificate of {caller.identity} ended at {shown_time(caller.facts.end)} by the clock here: open the "
        "session with a renewed one, check the clocks, or join again",
        reason="CERTIFICATE_ENDED",
    )


async def anybody(node: str) -> None:
    """Checks a session without a certificate: accepts any node's name."""
