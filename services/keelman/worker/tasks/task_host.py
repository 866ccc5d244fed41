"""What a task and its parts need of their worker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.connect.watches import Watch
from keelman.worker.tasks.run_handle import RunHandle


@dataclass(frozen=True, slots=True)
class TaskHost:
    """What a task needs of its worker.

    `ticket` makes a start ticket for a run uid, None while the worker may not grant one. `confirm` answers a fence,
    that of a part of the task when it is given True, with the connector's committed offsets; None withdraws the ticket.
    `tell` has a status written soon: state, trace and what is ours in it. `fence` aborts what the task's producer has
    left open, if this worker may; `fence_parts` shuts out the producers of so many parts and says whether it could.
    `idle` says that the copy run has nothing to copy, `left` that the task is not parked any more, `ended` that nothing
    is to be heard of this copy run any more. `kind` is the task's kind, as `StartQueue` has it. `failed` is called when
    the task has failed without a copy run that would have told it. `resting` is what the task may wait for instead of
    its turn; None when a copy run is to look.
    """

    ticket: Callable[[str], tickets.StartTicket | None]
    confirm: Callable[[bool], Awaitable[Sequence[tuple[bytes, bytes]] | None]]
    tell: Callable[[str, str | None, Mapping[str, object]], None]
    fence: Callable[[], Awaitable[None]]
    fence_parts: Callable[[int], Awaitable[bool]]
    idle: Callable[[], None]
    left: Callable[[], None]
    ended: Callable[[str], object]
    kind: Callable[[], str] = lambda: ""
    failed: Callable[[RunUpdate], None] = lambda update: None
    resting: Callable[[], Watch | None] = lambda: None


@dataclass(frozen=True, slots=True)
class PartHost:
    """What the parts need of their task.

    `ticket` makes a ticket of the task for a run uid, None while there is none. `answer` confirms a part's fence or
    withdraws its ticket. `fence` shuts out the producers of so many parts and says whether it could. `ended` says that
    nothing is to be heard of this copy run any more, `hurried` that there is no time to drain.
    """

    ticket: Callable[[str], tickets.StartTicket | None]
    answer: Callable[[RunHandle], Awaitable[None]]
    fence: Callable[[int], Awaitable[bool]]
    ended: Callable[[str], object]
    hurried: Callable[[], bool]
