"""Decides which certificate a state service shows, and which callers it admits: by the installation's CA, by users' own
certificates, or without any."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from keelman.model.errors import InvalidArgument, KeelmanError
from keelman.rpc.credentials import Newest, Pems, Tls
from keelman.rpc.identity import Identity, IdentityKind
from keelman.rpc.server import INSTALLATION, Authorize
from keelman.runtime.home import write_file
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.tls.certificates import certificate_facts, certificate_request, made_key
from keelman.state.resources.store import ResourceStore
from keelman.state.settings import Settings
from keelman.state.trust.authorities import PresentAuthorities
from keelman.state.trust.callers import CallerCheck
from keelman.state.trust.members import Members, open_members

log = get_logger()
AGAIN_SECONDS = 60.0
ANY = ("0.0.0.0", "::")


@dataclass(slots=True)
class OwnCertificate:
    """A state service's own certificate: in memory, with a new key at each start. It is signed again before it ends."""

    members: Members
    hosts: tuple[str, ...]
    _key: bytes = field(default_factory=made_key, repr=False)
    _pems: Pems = field(default_factory=Pems)

    def newest(self) -> Pems:
        """Returns the present certificate, with the CA: only clients with its certificates may connect."""
        return self._pems

    def is_of_others(self) -> bool:
        """Tells whether the CAs are others than when it was signed."""
        return self._pems.roots != self.members.present.value.pem.encode()

    def sign(self) -> float:
        """Signs it; returns the seconds until the next signing."""
        holder, now = Identity(IdentityKind.STATE, socket.gethostname()), datetime.now(UTC)
        authorities = self.members.present.value
        chain = authorities.sign(certificate_request(self._key), holder, self.hosts, now, self.members.life)
        self._pems = Pems(chain.encode(), self._key, authorities.pem.encode())
        return (certificate_facts(chain.encode()).renewal() - now).total_seconds()

    async def keep(self) -> None:
        """Signs it again and again, until cancelled."""
        while True:
            try:
                pause = self.sign()
            except (KeelmanError, ValueError) as error:
                log.error("certificate_not_signed", error=str(error))
                pause = AGAIN_SECONDS
            await asyncio.sleep(max(1.0, pause))


@dataclass(frozen=True, slots=True)
class Trust:
    """`tls` and `authorize` are for the server; `own` is the certificate to keep."""

    tls: Tls | Newest | None
    callers: CallerCheck | None
    members: Members | None
    own: OwnCertificate | None
    file: Path | None = None
    """Where the certificates of the CAs are kept for those who shall trust them."""

    @property
    def authorize(self) -> Authorize | None:
        """Refuses calls by their callers; None if clients show no certificates."""
        return None if self.callers is None else self.callers.authorize

    @property
    def authorities(self) -> PresentAuthorities | None:
        """The CA of the installation; None if there is none."""
        return None if self.members is None else self.members.present

    async def follow(self) -> None:
        """Takes over a change of the CA that any state service has made; called again and again."""
        if self.members is None or self.own is None or self.file is None:
            return
        await self.members.follow()
        if self.own.is_of_others():
            self.own.sign()
            write_file(self.file, self.members.present.value.pem.encode(), mode=0o644)

    @classmethod
    async def of(cls, settings: Settings, store: ResourceStore) -> Trust:
        """Makes the CA at its first start, and writes its certificate to state/ca.pem under the home, for those who
        shall trust it. Raises InvalidArgument."""
        tls = Tls.of("state", settings.tls_certificate, settings.tls_key, settings.client_ca)
        if settings.trust != INSTALLATION:
            callers = None if tls is None or tls.client_ca is None else CallerCheck(None)
            return cls(tls, callers, None, None)
        if tls is not None:
            if tls.client_ca is None:
                raise InvalidArgument.of(
                    "state.client_ca", "", "the PEM file of the CA of agents and gateways, beside tls_certificate"
                )
            return cls(tls, CallerCheck(None), None, None)
        members = await open_members(store, timedelta(hours=settings.certificate_hours))
        file = settings.folder.authority
        try:
            write_file(file, members.present.value.pem.encode(), mode=0o644)
        except OSError as error:
            raise InvalidArgument.of("state.home", str(file), f"a file that can be written ({error})") from None
        own = OwnCertificate(members, hosts_of(settings))
        own.sign()
        return cls(own.newest, CallerCheck(members), members, own, file)


def hosts_of(settings: Settings) -> tuple[str, ...]:
    """Returns the state service's names in its certificate, beside the name that all state services have."""
    advertised = [part.rpartition(":")[0].strip("[]") for part in settings.address.split(",")]
    return tuple(dict.fromkeys(host for host in (settings.host, *advertised) if host and host not in ANY))
