"""Broker clusters and worker clusters: what the user wants of them and the state they are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias


class ClusterGoal(StrEnum):
    """What the verbs asked for."""

    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    DELETED = "DELETED"


class ClusterState(StrEnum):
    """Where a cluster of processes stands."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    DEGRADED = "DEGRADED"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    DELETING = "DELETING"


@dataclass(frozen=True, slots=True)
class ManagedBrokers:
    """One broker on each of these nodes, in this order; never moved."""

    nodes: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExternalBrokers:
    """Brokers that somebody else runs: host:port,host:port and Kafka client properties named as in Java."""

    bootstrap_servers: str
    client_properties: Mapping[str, str] = field(default_factory=dict)


BrokerClusterSpec: TypeAlias = ManagedBrokers | ExternalBrokers


@dataclass(frozen=True, slots=True)
class BrokerClusterStatus:
    """What is known of a broker cluster."""

    state: ClusterState = ClusterState.STARTING
    message: str = ""
    bootstrap_servers: str = ""


@dataclass(frozen=True, slots=True)
class BrokerCluster:
    """A Kafka cluster that worker clusters use. Times are aware UTC; `etag` changes with every change."""

    name: str
    uid: str
    create_time: datetime
    update_time: datetime
    generation: int
    etag: str
    goal: ClusterGoal
    spec: BrokerClusterSpec
    kafka_cluster_id: str = ""
    note: str = ""
    """What keeps the planner from placing it, for people; empty when nothing does."""
    reachable: bool | None = None
    """Whether an external cluster answered when last asked; None before the first answer."""
    status: BrokerClusterStatus = field(default_factory=BrokerClusterStatus)


@dataclass(frozen=True, slots=True)
class WorkerClusterSpec:
    """What the user wants of a worker cluster: `nodes` (one worker on each, never moved), or else `count` workers."""

    broker_cluster: str
    nodes: tuple[str, ...] = ()
    count: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def wanted_workers(self) -> int:
        """How many workers it is to have."""
        return len(self.nodes) or self.count


@dataclass(frozen=True, slots=True)
class WorkerClusterStatus:
    """What is known of a worker cluster."""

    state: ClusterState = ClusterState.STOPPED
    message: str = ""
    ready_workers: int = 0
    rest_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerCluster:
    """Workers that share a group. Times are aware UTC; `etag` changes with every change."""

    name: str
    uid: str
    create_time: datetime
    update_time: datetime
    generation: int
    etag: str
    goal: ClusterGoal
    spec: WorkerClusterSpec
    note: str = ""
    """What keeps the planner from placing all of it, for people; empty when nothing does."""
    status: WorkerClusterStatus = field(default_factory=WorkerClusterStatus)
