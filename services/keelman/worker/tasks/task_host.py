"""The part of a worker that a task and its parts use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.connect.watches import Watch
from keelman.worker.tasks.run_handle import RunHandle


class TaskHost(Protocol):
    """A task's access to its worker."""

    def ticket(self, uid: str) -> tickets.StartTicket | None:
        """A start ticket for a copy run of this uid; None while the worker may not grant one."""

    async def confirm(self, part: bool) -> Sequence[tuple[bytes, bytes]] | None:
        """The connector's committed offsets, which answer a fence, with `part` that of a part of the task; None
        withdraws the ticket."""

    def report(self, state: str, trace: str | None, more: Mapping[str, object]) -> None:
        """Has a status written soon: state, trace and what is ours in it."""

    async def fence(self) -> None:
        """Aborts what the task's producer has left open, if this worker may."""

    async def fence_parts(self, parts: int) -> bool:
        """Fences the producers of so many parts; whether it could."""

    def kind(self) -> str:
        """The task's kind, as `StartQueue` has it."""

    def resting(self) -> Watch | None:
        """What the task may wait for instead of its turn; None when a copy run is to look."""

    def on_idle(self) -> None:
        """The copy run has nothing to copy."""

    def on_unpark(self) -> None:
        """The task is parked no more."""

    def on_failure(self, update: RunUpdate) -> None:
        """The task has failed without a copy run that would have reported it."""

    def on_end(self, uid: str) -> None:
        """Nothing more is to be heard of this copy run."""


@dataclass(frozen=True, slots=True)
class PartHost:
    """The parts' access to their task.

    `ticket` makes a ticket of the task for a run uid, None while there is none. `answer` confirms a part's fence or
    withdraws its ticket. `fence` shuts out the producers of so many parts and says whether it could. `on_end` is called
    when nothing more is to be heard of a copy run, `hurried` says that there is no time to drain.
    """

    ticket: Callable[[str], tickets.StartTicket | None]
    answer: Callable[[RunHandle], Awaitable[None]]
    fence: Callable[[int], Awaitable[bool]]
    on_end: Callable[[str], None]
    hurried: Callable[[], bool]
