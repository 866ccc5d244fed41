"""The audit's way to the state service: batches, repetitions, the bound, and the gateway's end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from keelman.api.event.v1.audit_event_pb2 import AuditEvent
from keelman.gateway.access import audit_queue
from keelman.gateway.access.audit_queue import AT_ONCE, AuditQueue
from keelman.model.errors import InvalidArgument, KeelmanError, Unavailable
from support.eventually import eventually


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_queue, "PAUSE_SECONDS", 0.001)


class State:
    """A state service that stores events, or raises an error."""

    def __init__(self) -> None:
        self.stored: list[AuditEvent] = []
        self.sizes: list[int] = []
        self.error: KeelmanError | None = None

    async def record(self, events: Sequence[AuditEvent]) -> None:
        self.sizes.append(len(events))
        if self.error is not None:
            raise self.error
        self.stored += events


async def test_events_come_in_order_and_in_batches() -> None:
    state, queue = State(), AuditQueue()
    for number in range(AT_ONCE + 1):
        queue.add(AuditEvent(call=str(number)))
    async with queue.sending(state.record):
        await eventually(lambda: len(state.stored) == AT_ONCE + 1)
        queue.add(AuditEvent(call="last"))
    assert [e.call for e in state.stored] == [*map(str, range(AT_ONCE + 1)), "last"]
    assert state.sizes == [AT_ONCE, 1, 1]


async def test_events_wait_for_a_state_service_that_is_away_and_lost_ones_are_counted() -> None:
    state, queue = State(), AuditQueue(max_events=2)
    state.error = Unavailable("away")
    async with queue.sending(state.record):
        for number in range(5):
            queue.add(AuditEvent(call=str(number), left_out=int(number == 4)))
        await eventually(lambda: len(state.sizes) >= 1)
        state.error = None
        await eventually(lambda: len(state.stored) == 2)
        queue.add(AuditEvent(call="next", left_out=10))
        await eventually(lambda: len(state.stored) == 3)
    assert [(e.call, e.left_out) for e in state.stored] == [("0", 0), ("1", 0), ("next", 14)]


async def test_events_that_are_refused_do_not_hold_up_the_others() -> None:
    state, queue = State(), AuditQueue()
    state.error = InvalidArgument("too large")
    async with queue.sending(state.record):
        queue.add(AuditEvent(call="bad"))
        await eventually(lambda: state.sizes == [1])
        state.error = None
        queue.add(AuditEvent(call="good"))
        await eventually(lambda: len(state.stored) == 1)
    assert [(e.call, e.left_out) for e in state.stored] == [("good", 1)]


async def test_the_end_of_a_gateway_does_not_wait_for_a_state_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_queue, "LAST_SECONDS", 0.01)
    queue = AuditQueue()

    async def silent(events: Sequence[AuditEvent]) -> None:
        await asyncio.Event().wait()

    async with asyncio.timeout(30), queue.sending(silent):
        queue.add(AuditEvent(call="lost"))
