"""The part of a worker that a task and its parts use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.connect.watches import Watch
from keelman.worker.tasks.run_handle import RunHandle


class TaskHost(Protocol):
    """A task's access to its worker."""

    def ticket(self, uid: str) -> tickets.StartTicket | None:
        """Returns a start ticket for a copy run of this uid; None while the worker may not grant one."""

    async def confirm(self, part: bool) -> Sequence[tuple[bytes, bytes]] | None:
        """Returns the connector's committed offsets, which answer a fence, with `part` that of a part of the task; None
        withdraws the ticket."""

    async def fence(self) -> None:
        """Aborts open transactions of the task's producer, if this worker may."""

    async def fence_parts(self, parts: int) -> bool:
        """Fences the producers of so many parts; returns whether it could."""

    def kind(self) -> str:
        """Returns the task's kind, as in `StartQueue`."""

    def resting(self) -> Watch | None:
        """Returns the watch that the task may wait for instead of its turn; None when a copy run has to look."""

    def on_idle(self) -> None:
        """Called when the copy run has nothing to copy."""

    def on_unpark(self) -> None:
        """Called when the task is no longer parked."""

    def on_failure(self, update: RunUpdate) -> None:
        """Called when the task has failed without a copy run that would have reported it."""

    def on_end(self, uid: str) -> None:
        """Called when no more reports of this copy run come."""


@dataclass(frozen=True, slots=True)
class PartHost:
    """The parts' access to their task.

    `ticket` makes a ticket of the task for a run uid, None while there is none. `answer` confirms a part's fence or
    withdraws its ticket. `fence` shuts out the producers of so many parts and returns whether it could. `on_end` is
    called when no more reports of a copy run come, `hurried` tells whether there is no time to drain.
    """

    ticket: Callable[[str], tickets.StartTicket | None]
    answer: Callable[[RunHandle], Awaitable[None]]
    fence: Callable[[int], Awaitable[bool]]
    on_end: Callable[[str], None]
    hurried: Callable[[], bool]
