"""The tables of the CA, of join tokens, of the certificates to which names belong, and of used signatures. Times are
whole microseconds since 1970 UTC."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import BigInteger
from sqlalchemy.types import JSON
from sqlmodel import Field, SQLModel, col


class JoinTokenRow(SQLModel, table=True):
    """The permission to join, once. Of its secret only the SHA-256 is stored; `used_key` is that of the public key that
    joined."""

    __tablename__ = "join_token"
    name: str = Field(primary_key=True)
    secret_digest: str
    role: str
    member: str
    create_time: int = Field(sa_type=BigInteger)
    expire_time: int = Field(sa_type=BigInteger)
    use_time: int = Field(sa_type=BigInteger)
    used_by: str
    used_key: str


class CertificateRow(SQLModel, table=True):
    """The owner of a name: `holder` is a member's kind and name, as in node/n1; `key_digest` the SHA-256 of the public
    key whose certificates have the name. `issuer` is the SHA-256 of the CA that signed, in hex, empty if an earlier
    version did; `trusted` are those of the CAs that the holder was given to trust."""

    __tablename__ = "certificate"
    holder: str = Field(primary_key=True)
    key_digest: str
    hosts: list[str] = Field(sa_type=JSON)
    issue_time: int = Field(sa_type=BigInteger)
    end_time: int = Field(sa_type=BigInteger)
    issuer: str = ""
    trusted: list[str] = Field(sa_type=JSON, default_factory=list)


class SignatureRow(SQLModel, table=True):
    """A used signature, and the SHA-256 of the text that identifies the try that used it."""

    __tablename__ = "signature"
    signature: str = Field(primary_key=True)
    attempt: str = Field(primary_key=True)
    time: int = Field(sa_type=BigInteger, index=True)


def without_certificate(holder: str) -> sa.Delete:
    """Returns the statement that takes a member's name, as in node/n1, from its certificate, which admits no one any
    more."""
    return sa.delete(CertificateRow).where(col(CertificateRow.holder) == holder)
