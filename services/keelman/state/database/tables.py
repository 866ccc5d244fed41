"""The table of resources, and those that belong to no noun. Times are whole microseconds since 1970 UTC."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Column, LargeBinary, Text
from sqlmodel import Field, SQLModel

AUTHORITY = "authority"
"""The place that the CA's private key is sealed to."""


class CounterRow(SQLModel, table=True):
    """A number that only grows. The row `revision` is also the lock that orders all writers."""

    __tablename__ = "counter"
    name: str = Field(primary_key=True)
    value: int = Field(sa_type=BigInteger)


class ResourceRow(SQLModel, table=True):
    """A resource of any noun. `revision` is its etag; `payload` is JSON of its fields, where the secrets of `spec` are
    sealed."""

    __tablename__ = "resource"
    noun: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    revision: int = Field(sa_type=BigInteger)
    payload: dict[str, Any] = Field(sa_type=JSON)


class OutboxRow(SQLModel, table=True):
    """One event, as the bytes that the relay publishes."""

    __tablename__ = "outbox"
    revision: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    time: int = Field(sa_type=BigInteger)
    noun: str
    name: str
    payload: bytes = Field(sa_type=LargeBinary)


class HeldRow(SQLModel):
    """The process that holds a task which only one may do."""

    holder: str
    epoch: int = Field(sa_type=BigInteger)
    beat: int = Field(sa_type=BigInteger)


class RelayRow(HeldRow, table=True):
    """The process that publishes the outbox, and its progress: one row."""

    __tablename__ = "relay"
    id: int = Field(primary_key=True)
    published: int = Field(sa_type=BigInteger)


class LeaseRow(HeldRow, table=True):
    """The process that has a lease; one row for each lease."""

    __tablename__ = "lease"
    name: str = Field(primary_key=True)


class SealingRow(SQLModel, table=True):
    """Proves that the secrets in all rows are sealed with a key: one row."""

    __tablename__ = "sealing"
    id: int = Field(primary_key=True)
    proof: str = Field(sa_type=Text)
    handed_on: str = Field(default="", sa_type=Text)
    """For a while after a change the new key, sealed with the former one, for state services that have the former."""
    change_time: int = Field(default=0, sa_type=BigInteger)


class RequestRow(SQLModel, table=True):
    """The answer to a create, kept for a repeated request."""

    __tablename__ = "request"
    request_id: str = Field(primary_key=True)
    method: str
    time: int = Field(sa_type=BigInteger, index=True)
    answer: bytes = Field(sa_type=LargeBinary)


class PluginChunkRow(SQLModel, table=True):
    """A part of a plugin's file, where files are kept in the database."""

    __tablename__ = "plugin_chunk"
    uid: str = Field(primary_key=True)
    number: int = Field(primary_key=True)
    time: int = Field(sa_type=BigInteger)
    data: bytes = Field(sa_type=LargeBinary)


class InstallationRow(SQLModel, table=True):
    """The name under which this database's files are kept outside of it: one row."""

    __tablename__ = "installation"
    id: int = Field(primary_key=True)
    uid: str


class AuthorityRow(SQLModel, table=True):
    """A CA of the installation: one row, and a second one while it is replaced. `secret` is its private key, sealed;
    `role` is signing, next or former."""

    __tablename__ = "authority"
    id: int = Field(primary_key=True)
    certificate: str = Field(sa_type=Text)
    secret: str = Field(sa_type=Text)
    create_time: int = Field(sa_type=BigInteger)
    role: str = "signing"
