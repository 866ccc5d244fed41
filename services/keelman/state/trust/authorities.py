"""Reads and writes the trusted CAs in the database: the signing CA, and a second CA during a replacement."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from keelman.rpc.identity import Identity
from keelman.runtime.tls.certificates import issued_by
from keelman.state.database.sealing import sealer_of
from keelman.state.database.tables import AUTHORITY, AuthorityRow
from keelman.state.database.times import micros
from keelman.state.trust.authority import Authority

SECRET = "secret"


class AuthorityRole(StrEnum):
    """The role of a CA in the database: it signs; it will sign, and is trusted already; it signed, and is trusted
    still."""

    SIGNING = "signing"
    NEXT = "next"
    FORMER = "former"


class AuthorityPhase(StrEnum):
    """The phases of a replacement: none is under way; the next CA is trusted beside the signing CA; the next CA signs,
    and the former CA is trusted still."""

    STABLE = "stable"
    INTRODUCED = "introduced"
    REPLACED = "replaced"


PHASES = {
    None: AuthorityPhase.STABLE,
    AuthorityRole.NEXT: AuthorityPhase.INTRODUCED,
    AuthorityRole.FORMER: AuthorityPhase.REPLACED,
}


@dataclass(frozen=True, slots=True)
class Authorities:
    """The signing CA, and during a replacement the other trusted CA with its role."""

    signing: Authority
    other: Authority | None = None
    role: AuthorityRole | None = None

    @property
    def phase(self) -> AuthorityPhase:
        """The present phase of a replacement."""
        return PHASES[self.role]

    @property
    def pem(self) -> str:
        """The certificates to trust, that of the signing CA first."""
        return self.signing.pem + (self.other.pem if self.other is not None else "")

    @property
    def digests(self) -> list[str]:
        """The SHA-256 of the trusted certificates, in hex, that of the signing CA first."""
        return [self.signing.digest, *([] if self.other is None else [self.other.digest])]

    def sign(self, request: str, holder: Identity, hosts: Iterable[str], now: datetime, life: timedelta) -> str:
        """Returns a certificate of the signing CA; see `Authority.sign`."""
        return self.signing.sign(request, holder, hosts, now, life)

    def trusts(self, certificate: bytes) -> bool:
        """Tells whether one of the CAs signed a certificate in PEM."""
        return issued_by(certificate, self.pem.encode())


@dataclass(slots=True)
class PresentAuthorities:
    """The CAs that this process has read last; `marks` identifies their rows, see `marks_of`."""

    value: Authorities
    marks: str


async def authority_rows(session: AsyncSession) -> Sequence[AuthorityRow]:
    """Returns the rows of the CAs, the oldest first."""
    return (await session.exec(select(AuthorityRow).order_by(col(AuthorityRow.id)))).all()


def opened_authorities(session: AsyncSession, rows: Iterable[AuthorityRow]) -> Authorities:
    """Returns the CAs of the rows, of which one signs."""
    found = {AuthorityRole(row.role): _opened(session, row) for row in rows}
    signing = found.pop(AuthorityRole.SIGNING)
    role, other = next(iter(found.items()), (None, None))
    return Authorities(signing, other, role)


def add_authority(session: AsyncSession, number: int, role: AuthorityRole, now: datetime) -> Authority:
    """Makes a new CA and adds its row."""
    made = Authority.made(now)
    sealed = sealer_of(session).seal({SECRET: made.key_pem}, AUTHORITY)[SECRET]
    session.add(AuthorityRow(id=number, certificate=made.pem, secret=sealed, create_time=micros(now), role=role.value))
    return made


def marks_of(rows: Iterable[AuthorityRow]) -> str:
    """Returns a text that changes when the CAs or their roles do."""
    text = "\n".join(f"{row.role} {row.certificate}" for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()


def _opened(session: AsyncSession, row: AuthorityRow) -> Authority:
    return Authority.of(row.certificate, sealer_of(session).open({SECRET: row.secret}, AUTHORITY)[SECRET])
