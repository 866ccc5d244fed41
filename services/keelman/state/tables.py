"""The tables: neither the model nor the wire. Times are whole microseconds since 1970 UTC; nested values are JSON."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, LargeBinary, Text
from sqlalchemy.types import JSON
from sqlmodel import Field, SQLModel


def _json() -> Any:
    return Column(JSON, nullable=False)


def _big() -> Any:
    return Column(BigInteger, nullable=False)


def _text() -> Any:
    return Column(Text, nullable=False)


class CounterRow(SQLModel, table=True):
    """A number that only grows. The row `revision` is also the lock that orders all writers."""

    __tablename__ = "counter"
    name: str = Field(primary_key=True)
    value: int = Field(sa_column=_big())


class NodeRow(SQLModel, table=True):
    """A node and its last registration; `spec` is JSON."""

    __tablename__ = "node"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=_big())
    update_time: int = Field(sa_column=_big())
    state: str
    agent_address: str
    cpus: int
    memory_bytes: int = Field(sa_column=_big())
    version: str
    incarnation: str
    session: int = Field(sa_column=_big())
    message: str = Field(sa_column=_text())
    address: str
    spec: dict[str, Any] = Field(sa_column=_json())
    generation: int = Field(sa_column=_big())
    revision: int = Field(sa_column=_big())


class BrokerClusterRow(SQLModel, table=True):
    """A broker cluster; `spec`, `seen` and `status` are JSON."""

    __tablename__ = "broker_cluster"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=_big())
    update_time: int = Field(sa_column=_big())
    generation: int = Field(sa_column=_big())
    revision: int = Field(sa_column=_big())
    goal: str
    spec: dict[str, Any] = Field(sa_column=_json())
    kafka_cluster_id: str
    note: str = Field(sa_column=_text())
    reachable: bool | None
    seen: dict[str, Any] = Field(sa_column=_json())
    status: dict[str, Any] = Field(sa_column=_json())


class WorkerClusterRow(SQLModel, table=True):
    """A worker cluster; `spec` and `status` are JSON."""

    __tablename__ = "worker_cluster"
    name: str = Field(primary_key=True)
    uid: str
    create_time: int = Field(sa_column=_big())
    update_time: int = Field(sa_column=_big())
    generation: int = Field(sa_column=_big())
    revision: int = Field(sa_column=_big())
    goal: str
    broker_cluster: str = Field(foreign_key="broker_cluster.name", index=True)
    spec: dict[str, Any] = Field(sa_column=_json())
    note: str = Field(sa_column=_text())
    status: dict[str, Any] = Field(sa_column=_json())
    force: bool


class WorkloadRow(SQLModel, table=True):
    """A workload, where it is placed, and what its agent last reported."""

    __tablename__ = "workload"
    name: str = Field(primary_key=True)
    uid: str
    node: str = Field(foreign_key="node.name", index=True)
    generation: int = Field(sa_column=_big())
    goal: str
    spec: dict[str, Any] = Field(sa_column=_json())
    status: dict[str, Any] | None = Field(sa_column=Column(JSON(none_as_null=True), nullable=True))
    has_run: bool
    tried_ports: list[int] = Field(sa_column=_json())
    limits: dict[str, Any] = Field(sa_column=_json())
    force: bool


class OutboxRow(SQLModel, table=True):
    """One event, as the bytes that the relay publishes."""

    __tablename__ = "outbox"
    revision: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    time: int = Field(sa_column=_big())
    noun: str
    name: str
    payload: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class RelayRow(SQLModel, table=True):
    """Who publishes the outbox, and how far it is: one row."""

    __tablename__ = "relay"
    id: int = Field(primary_key=True)
    holder: str
    epoch: int = Field(sa_column=_big())
    beat: int = Field(sa_column=_big())
    published: int = Field(sa_column=_big())


class RequestRow(SQLModel, table=True):
    """The answer to a create, kept for a repeated request."""

    __tablename__ = "request"
    request_id: str = Field(primary_key=True)
    method: str
    time: int = Field(sa_column=_big())
    answer: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
