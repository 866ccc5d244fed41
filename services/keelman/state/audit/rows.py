"""The table of the audit. Times are whole microseconds since 1970 UTC."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary
from sqlmodel import Field, SQLModel


class AuditRow(SQLModel, table=True):
    """One event. `payload` is its message, with its number."""

    __tablename__ = "audit_event"
    __table_args__ = (Index("ix_audit_event_refused", "refused", "number"),)
    number: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    id: str = Field(unique=True)
    time: int = Field(sa_type=BigInteger)
    caller: str
    outcome: str
    refused: bool
    payload: bytes = Field(sa_type=LargeBinary)
