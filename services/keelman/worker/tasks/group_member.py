"""The place of a task's worker in its group, as tasks see it."""

from __future__ import annotations

from typing import Protocol


class GroupMember(Protocol):
    """This worker, as a member of its group."""

    @property
    def generation(self) -> int:
        """The generation of the round in which it got its place; -1 before the first."""

    @property
    def healthy(self) -> bool:
        """Whether it has its place, and the group's coordinator has confirmed that lately."""

    @property
    def leads(self) -> bool:
        """Whether it certainly leads the group: it has its place, and the group confirms it."""

    async def proven(self) -> bool:
        """Returns whether the coordinator confirms now that it has its place. Raises nothing."""
