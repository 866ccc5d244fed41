"""A node: a host with an agent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class NodeState(StrEnum):
    """Whether a node can be given work."""

    ONLINE = "ONLINE"
    """Its session is alive."""
    OFFLINE = "OFFLINE"
    """Its session lapsed; what its workloads do is not known."""
    UNKNOWN = "UNKNOWN"
    """The state service restarted a moment ago and judges no node yet."""


@dataclass(frozen=True, slots=True)
class Node:
    """What its agent said at the last registration, and whether it is still heard of. Times are aware UTC."""

    name: str
    uid: str
    create_time: datetime
    update_time: datetime
    state: NodeState
    agent_address: str
    cpus: int = 0
    memory_bytes: int = 0
    version: str = ""
    message: str = ""
    heartbeat_time: datetime | None = None

    @property
    def host(self) -> str:
        """Address of the node: the host part of its agent's address, without brackets."""
        return self.agent_address.rpartition(":")[0].strip("[]")
