"""A node: a host with an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from keelman.model.resource import Resource
from keelman.model.workload import NO_LIMITS, ResourceLimits


class NodeState(StrEnum):
    """Whether a node can be given work."""

    ONLINE = "ONLINE"
    """Its session is alive."""
    OFFLINE = "OFFLINE"
    """Its session lapsed; the state of its workloads is unknown."""
    UNKNOWN = "UNKNOWN"
    """The state service restarted a moment ago and judges no node yet."""
    EXPECTED = "EXPECTED"
    """A user created it; its agent has not come yet."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node as the user wants it. `capacity`: the limits for workloads placed there; a 0 in it means the host's
    own."""

    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: ResourceLimits = NO_LIMITS
    cordoned: bool = False
    """Nothing new is placed there."""
    draining: bool = False
    """It is cordoned, and movable workers leave it."""


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """A host's use and reserves, and the versions on it, from its last heartbeat."""

    cpus_used: float
    memory_available_bytes: int
    disk_free_bytes: int
    load: float
    open_files_limit: int | None = None
    clock_ms: int | None = None
    python_version: str = ""
    java_version: str = ""


@dataclass(frozen=True, slots=True)
class Node(Resource):
    """A node as its agent registered it last, and whether the agent still sends heartbeats. Times are aware UTC."""

    NOUN: ClassVar[str] = "node"

    state: NodeState
    agent_address: str
    cpus: int = 0
    memory_bytes: int = 0
    version: str = ""
    message: str = ""
    heartbeat_time: datetime | None = None
    address: str = ""
    """The address of its workloads; empty: the host of the agent's address."""
    spec: NodeSpec = field(default_factory=NodeSpec)
    generation: int = 1
    etag: str = ""
    figures: NodeFigures | None = None
    session: int = 0
    """Number of its newest session."""
    incarnation: str = ""
    """New at each start of its agent's process."""
    broker_tls: bool = False
    """Its agent starts brokers with TLS; agents of earlier versions would start them in plain text."""
    tenant_users: bool = False
    """Its agent runs the workloads of each tenant as a user of their own."""

    @property
    def host(self) -> str:
        """Address of the node, at which its workloads are reached, without brackets."""
        return self.address or self.agent_address.rpartition(":")[0].strip("[]")

    @property
    def takes_new(self) -> bool:
        """True when workloads may be placed on it."""
        return self.state is NodeState.ONLINE and not (self.spec.cordoned or self.spec.draining)
