"""The place of a task's worker in its group, as tasks see it."""

from __future__ import annotations

from typing import Protocol


class GroupMember(Protocol):
    """This worker, as a member of its group."""

    @property
    def generation(self) -> int:
        """Of the round in which it got its place; -1 before the first."""

    @property
    def healthy(self) -> bool:
        """Whether it has its place, and the group's coordinator has said so lately."""

    @property
    def leads(self) -> bool:
        """Whether it leads the group for certain: it has its place, and the group says so."""

    async def proven(self) -> bool:
        """Whether the coordinator says now that it has its place. Raises nothing."""
