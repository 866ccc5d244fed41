"""Holds the orders that are on their way to one slot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from keelman.api.copy.v1.run_order_pb2 import RunOrder
from keelman.api.copy.v1.slot_service_pb2 import AttachResponse, SlotBounds, SlotEnd, SlotLogLevels


class Mailbox:
    """Orders on their way to one slot, and whether its stream has to be closed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[AttachResponse] = asyncio.Queue()
        self.closed = asyncio.Event()

    def send(self, order: RunOrder) -> None:
        """Sends one order."""
        self.queue.put_nowait(AttachResponse(order=order))

    def end(self, reason: str) -> None:
        """Orders the slot to end."""
        self.queue.put_nowait(AttachResponse(end=SlotEnd(reason=reason)))

    def bound(self, cpus: float) -> None:
        """Bounds the processors that the slot may use; 0 lifts the bound."""
        self.queue.put_nowait(AttachResponse(bounds=SlotBounds(cpus=cpus)))

    def log_levels(self, levels: Mapping[str, str]) -> None:
        """Sends the slot the levels of logging that were set on its worker."""
        self.queue.put_nowait(AttachResponse(log_levels=SlotLogLevels(levels=levels)))
