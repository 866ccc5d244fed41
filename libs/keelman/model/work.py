"""The units of work, a connector's instance or one of its tasks, and the assignment of a group's member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

CONNECTOR_TASK = -1
"""The task number of a connector's instance in Connect's protocol."""


class Work(NamedTuple):
    """A connector's instance (task -1) or one of its tasks. Tens of thousands of them are hashed and sorted."""

    connector: str
    task: int = CONNECTOR_TASK

    @property
    def is_task(self) -> bool:
        """False for the connector's instance."""
        return self.task != CONNECTOR_TASK


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The leader's assignment to one member: new work, work to stop, and the time until the member must rejoin."""

    leader: str
    leader_url: str
    config_offset: int
    assigned: tuple[Work, ...] = ()
    revoked: tuple[Work, ...] = ()
    delay_ms: int = 0
    error: int = 0
