"""The slots' side of the service: one stream a slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from keelman.api.copy.v1.slot_service_pb2 import AttachRequest, AttachResponse, HomeBeat
from keelman.api.copy.v1.slot_service_pb2_grpc import SlotServiceServicer
from keelman.model.errors import DeadlineExceeded, InvalidArgument
from keelman.rpc.server import Context
from keelman.runtime.supervise import deadline, first_of
from keelman.spark.dispatch import Dispatcher
from keelman.spark.slots.choice import Slot
from keelman.spark.slots.mailbox import Mailbox

BEAT_SECONDS = 1.0
# Any process may open a stream: one without a greeting holds nothing for long.
GREETING_SECONDS = 10.0
END_SECONDS = 0.2


class SlotApi(SlotServiceServicer):
    """Serves SlotService."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def Attach(  # type: ignore[override]  # writes through the context: reader and writer side by side
        self, requests: AsyncIterator[AttachRequest], context: Context
    ) -> None:
        """Holds one slot's stream until either side gives the other up."""
        async with deadline(GREETING_SECONDS, DeadlineExceeded(f"a slot greets within {GREETING_SECONDS:g} s")):
            first = await anext(aiter(requests), AttachRequest())
        if first.WhichOneof("message") != "greeting":
            raise InvalidArgument("the first message of a slot is its greeting")
        slot, mail = self._dispatcher.attach(first.greeting)
        try:
            await first_of(self._hear(slot, requests), self._speak(mail, context), mail.closed.wait())
        finally:
            if slot.usable and slot.runs:  # its process may have died, and its reaper is about to report how
                asyncio.get_running_loop().call_later(END_SECONDS, self._dispatcher.pool.detached, slot)
            else:
                self._dispatcher.pool.detached(slot)

    async def _hear(self, slot: Slot, requests: AsyncIterator[AttachRequest]) -> None:
        async for message in requests:
            match message.WhichOneof("message"):
                case "beat":
                    self._dispatcher.pool.beat(slot, message.beat)
                case "update":
                    self._dispatcher.update(slot, message.update)
                case _:
                    raise InvalidArgument("a slot greets once, then sends beats and updates")

    @staticmethod
    async def _speak(mail: Mailbox, context: Context) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            try:
                async with asyncio.timeout_at(due):
                    message = await mail.queue.get()
            except TimeoutError:
                message = AttachResponse(beat=HomeBeat())
                due = loop.time() + BEAT_SECONDS
            await context.write(message)
