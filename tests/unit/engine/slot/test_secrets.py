"""A slot's reports on a copy run do not contain the secrets of its ticket."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_FAILED
from keelman.api.copy.v1.run_order_pb2 import RunOrder
from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, AttachResponse
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connectors.slot_parts import LOOP, USE_PLUGIN
from keelman.engine.slot.host import SlotHost, SlotOrder
from keelman.engine.slot.loops import Loops
from keelman.engine.slot.updates import UpdateQueue
from keelman.runtime.supervise import first_of

SECRET = "pa55-of-a-slot"


class Call:
    """A home that sends one order and records the reports."""

    def __init__(self, order: RunOrder) -> None:
        self._order = order
        self.said: list[AttachRequest] = []
        self.heard = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[AttachResponse]:
        yield AttachResponse(order=self._order)

    async def write(self, message: AttachRequest) -> None:
        self.said.append(message)
        if message.HasField("update"):
            self.heard.set()


async def test_a_failure_is_told_without_the_tickets_secrets() -> None:
    ticket = StartTicket(run_uid="r", connector_config={"password": SECRET}, hidden={SECRET: "${file:/s:p}"})
    call = Call(RunOrder(run_uid="r", start=ticket))
    order = SlotOrder(slot="s", token="t", home="h", beat_timeout_seconds=60.0, loop=LOOP, use_plugin=USE_PLUGIN)
    host = SlotHost(order)

    def begin(start_ticket: StartTicket) -> Any:
        raise ValueError(f"cannot log in with {start_ticket.connector_config['password']}")

    host._updates = UpdateQueue()
    host._loops = Loops(begin, host._updates.put)
    await host._hear(call)
    host._loops.open_next()
    await first_of(host._speak(call), call.heard.wait())
    (update,) = [message.update for message in call.said if message.HasField("update")]
    assert update.state == COPY_RUN_STATE_FAILED
    assert update.message == "cannot log in with ${file:/s:p}"
    assert "${file:/s:p}" in update.trace
    assert SECRET not in update.trace
