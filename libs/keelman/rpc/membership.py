"""A member of the installation, an agent or a gateway: its key and certificate, in the folder that the join created,
and their renewal before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from keelman.api.access.v1.certificate_service_pb2 import LookUpAuthorityRequest, RenewCertificateRequest
from keelman.api.access.v1.certificate_service_pb2_grpc import CertificateServiceStub
from keelman.model.errors import FailedPrecondition, KeelmanError
from keelman.rpc.channels import Channel, channel
from keelman.rpc.credentials import Pems
from keelman.rpc.identity import STATE_NAME, Identity
from keelman.runtime.backoff import Backoff
from keelman.runtime.home import private_folder, write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.certificates import (
    certificate_facts,
    certificate_request,
    issued_by,
    last_digest,
    private_key_digest,
    shown_time,
)

log = get_logger()
CALL_SECONDS = 10.0

Ask: TypeAlias = Callable[[str], Awaitable[Pems]]
"""Has a certificate request signed. Returns chain and roots. Raises KeelmanError."""
LOOK_SECONDS = 20.0
"""How often a member looks whether the CA is being replaced."""


@dataclass(frozen=True, slots=True)
class TrustedAuthority:
    """The CAs to trust, PEM, and the SHA-256 of the CA that signs, in hex."""

    roots: bytes
    issuer: str


Look: TypeAlias = Callable[[], Awaitable[TrustedAuthority]]
"""Returns the CAs of the installation. Raises KeelmanError."""


@dataclass(frozen=True, slots=True)
class MemberFolder:
    """The folder of a member's credentials: the key has mode 0600, the folder mode 0700."""

    root: Path

    @property
    def key(self) -> Path:
        """The private key, which never leaves the host."""
        return self.root / "key.pem"

    @property
    def certificate(self) -> Path:
        """The certificate, followed by the CA's."""
        return self.root / "certificate.pem"

    @property
    def authority(self) -> Path:
        """The CA's certificate."""
        return self.root / "ca.pem"

    def write(self, pems: Pems) -> None:
        """Writes all three files. Raises OSError."""
        private_folder(self.root)
        write_file(self.key, pems.key)
        write_file(self.authority, pems.roots, mode=0o644)
        write_file(self.certificate, pems.chain, mode=0o644)

    def read(self, holder: Identity) -> Pems:
        """Returns the stored credentials, checked. Raises FailedPrecondition: NOT_JOINED, or an error of
        `checked_member`."""
        try:
            pems = Pems(self.certificate.read_bytes(), self.key.read_bytes(), self.authority.read_bytes())
        except FileNotFoundError as error:
            raise FailedPrecondition(
                f"{holder} has not joined yet: {error.filename} does not exist; join with `keelman node join "
                "TOKEN@GATEWAY`, or set tls_certificate, tls_key and state_ca",
                reason="NOT_JOINED",
            ) from None
        except OSError as error:
            raise FailedPrecondition(
                f"{error.filename} cannot be read ({error.strerror})", reason="NOT_JOINED"
            ) from None
        return checked_member(holder, pems, str(self.certificate))


def checked_member(holder: Identity, pems: Pems, shown: str, now: datetime | None = None) -> Pems:
    """Returns a member's credentials, checked. Raises FailedPrecondition for a certificate that no peer would accept:
    of another name, key or CA (WRONG_CERTIFICATE), that has ended (CERTIFICATE_ENDED), or that is not valid yet
    (CERTIFICATE_NOT_YET_VALID)."""
    now = now or datetime.now(UTC)
    try:
        facts, key = certificate_facts(pems.chain), private_key_digest(pems.key)
    except ValueError as error:
        raise _wrong(f"{shown}: not a certificate with its key ({error}): join again") from None
    if holder.uri not in facts.uris:
        of = ", ".join(facts.uris) or "nobody"
        raise _wrong(f"{shown}: the certificate is of {of}, and not of {holder.uri}: join again as {holder}")
    if facts.key_digest != key:
        raise _wrong(f"{shown}: the certificate is of another private key than the one beside it: join again")
    if not issued_by(pems.chain, pems.roots):
        raise _wrong(f"{shown}: the certificate was not signed by the CA beside it: join again")
    if now >= facts.end:
        raise FailedPrecondition(
            f"{shown}: the certificate ended at {shown_time(facts.end)}, and here it is {shown_time(now)}: check the "
            "clock of this host; where that is right, join again",
            reason="CERTIFICATE_ENDED",
        )
    if now < facts.begin:
        raise FailedPrecondition(
            f"{shown}: the certificate is good from {shown_time(facts.begin)} on, and here it is {shown_time(now)}: "
            "check the clock of this host",
            reason="CERTIFICATE_NOT_YET_VALID",
        )
    return pems


class Member:
    """A member's credentials, which `run` renews while the process lives."""

    def __init__(self, holder: Identity, pems: Pems, ask: Ask, keep: Callable[[Pems], None], look: Look) -> None:
        """`ask` has a certificate request signed, `keep` stores the new credentials, and `look` returns the CAs."""
        self.holder = holder
        self._pems = pems
        self._ask, self._keep, self._look = ask, keep, look

    def newest(self) -> Pems:
        """Returns the current credentials."""
        return self._pems

    async def run(self) -> None:
        """Renews the certificate whenever two thirds of its time are over, and when the CA is replaced. Runs until
        cancelled."""
        backoff = Backoff(most=60.0)
        while True:
            facts, now = certificate_facts(self._pems.chain), datetime.now(UTC)
            due = (facts.renewal() - now).total_seconds()
            if due > 0:
                await asyncio.sleep(min(due, LOOK_SECONDS))
                if not await self._is_replaced():
                    continue
            try:
                await self._renew()
                backoff.reset()
            except (KeelmanError, OSError, ValueError) as error:
                ends = shown_time(facts.end)
                log.warning("certificate_not_renewed", holder=self.holder.path, ends=ends, error=str(error))
                await asyncio.sleep(backoff.next())

    async def _is_replaced(self) -> bool:
        """Returns whether the CAs are others than those of the present credentials; False if that is not known."""
        try:
            found = await self._look()
        except KeelmanError as error:  # also a state service of an earlier version
            log.debug("authority_unknown", holder=self.holder.path, error=str(error))
            return False
        return found.roots != self._pems.roots or found.issuer != last_digest(self._pems.chain)

    async def _renew(self) -> None:
        signed = await self._ask(certificate_request(self._pems.key))
        pems = Pems(signed.chain, self._pems.key, signed.roots)
        await asyncio.to_thread(self._keep, checked_member(self.holder, pems, "renewed"))
        self._pems = pems
        log.info("certificate_renewed", holder=self.holder.path, ends=shown_time(certificate_facts(pems.chain).end))


def renewing(holder: Identity, folder: MemberFolder, state_address: str, hosts: Sequence[str]) -> Member:
    """Returns the member of a folder, whose certificate the state service renews. Raises FailedPrecondition as
    `MemberFolder.read`."""

    def opened() -> Channel:
        shown = member.newest()
        return channel(
            state_address, root_certificates=shown.roots, client=shown, server_name=STATE_NAME, peer="the state service"
        )

    async def ask(request: str) -> Pems:
        async with opened() as link:
            sent = RenewCertificateRequest(certificate_request=request, hosts=hosts)
            answer = await CertificateServiceStub(link).RenewCertificate(sent, timeout=CALL_SECONDS)
        return Pems(answer.certificate.encode(), b"", answer.authority.encode())

    async def look() -> TrustedAuthority:
        async with opened() as link:
            return await look_up(link)

    member = Member(holder, folder.read(holder), ask, folder.write, look)
    return member


async def look_up(link: Channel) -> TrustedAuthority:
    """Returns the CAs, asked over a channel to a state service. Raises KeelmanError."""
    answer = await CertificateServiceStub(link).LookUpAuthority(LookUpAuthorityRequest(), timeout=CALL_SECONDS)
    return TrustedAuthority(answer.authority.encode(), answer.issuer)


def _wrong(text: str) -> FailedPrecondition:
    return FailedPrecondition(text, reason="WRONG_CERTIFICATE")
