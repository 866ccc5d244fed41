"""Starts the task loops of one slot a few at a time, passes orders to them, and ends them together."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Callable
from typing import Protocol, TypeAlias

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_ENDED,
    COPY_RUN_STATE_FAILED,
    COPY_RUN_STATE_FENCED,
    CopyRunState,
)
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.engine.control import Control
from keelman.model.errors import KeelmanError

SILENT_SECONDS = 10.0
CUT_SECONDS = 2.0
# Hundreds of clients that open at once wait for the brokers, and for each other, until they give up.
OPENING_AT_ONCE = 32
# A loop that takes longer waits for something: it keeps no others from opening.
OPENING_SECONDS = 5.0

Report: TypeAlias = Callable[[RunUpdate], None]


class Loop(Protocol):
    """A task loop, as its slot uses it; implemented by keelman.engine.run.CopyRunLoop."""

    @property
    def control(self) -> Control:
        """Takes the orders to the loop."""

    def start(self) -> None:
        """Starts the loop's thread. Called once."""

    def silent_seconds(self) -> float:
        """Returns the seconds for which the thread has given no sign of life though it should have."""

    def standing(self) -> str:
        """Returns the connector's method that the thread is in; empty when it is in none."""

    def join(self, timeout: float) -> bool | None:
        """Waits for the thread."""


class Loops:
    """The task loops of one slot, by copy run. Used in the slot's event loop only."""

    def __init__(
        self,
        begin: Callable[[StartTicket], Loop],
        report: Report,
        clock: Callable[[], float] = time.monotonic,
        *,
        awake_seconds: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """`begin` makes a loop for a ticket; its errors fail the copy run. `report` takes updates to the home.
        `awake_seconds` returns the seconds since the last standstill of the process, such as the start of a virtual
        machine."""
        self._begin, self._report, self._clock, self._awake_seconds = begin, report, clock, awake_seconds
        self._loops: dict[str, Loop] = {}
        self._opening: dict[str, float] = {}
        self._waiting: dict[str, StartTicket] = {}

    def apply(self, order: RunOrder) -> None:
        """Carries out one order; ignores orders for loops that have reported their end."""
        uid = order.run_uid
        if order.HasField("start"):
            if uid not in self._loops:
                self._waiting[uid] = order.start
                self.open_next()
        elif uid in self._waiting:
            self._change_waiting(uid, order)
        elif (loop := self._loops.get(uid)) is not None:
            loop.control.apply(order)

    def on_update(self, update: RunUpdate) -> None:
        """Handles an update that a loop has reported."""
        if update.state >= COPY_RUN_STATE_FENCED:
            self._opening.pop(update.run_uid, None)
            self.open_next()
        if update.state in (COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED):
            self._loops.pop(update.run_uid, None)

    def open_next(self) -> None:
        """Starts as many waiting loops as may open now. Called whenever that may have changed, and now and then."""
        now = self._clock()
        self._opening = {uid: since for uid, since in self._opening.items() if now - since < OPENING_SECONDS}
        while self._waiting and len(self._opening) < OPENING_AT_ONCE:
            uid = next(iter(self._waiting))
            self._open(uid, self._waiting.pop(uid), now)

    def silent(self) -> dict[str, str]:
        """Returns the copy runs whose loops have given no sign of life for too long, and the present method of each. A
        standstill of the whole process counts for no loop."""
        awake = self._awake_seconds()
        silent = {uid: min(awake, loop.silent_seconds()) for uid, loop in self._loops.items()}
        return {
            uid: f"{self._loops[uid].standing() or 'its loop'} has not come back for {seconds:.0f} s"
            for uid, seconds in silent.items()
            if seconds > SILENT_SECONDS
        }

    def cut_all(self, reason: str) -> None:
        """Ends every loop at once, and waits for them briefly."""
        self._waiting.clear()
        for loop in self._loops.values():
            with contextlib.suppress(Exception):
                loop.control.cut(reason)
        end = time.monotonic() + CUT_SECONDS
        for loop in self._loops.values():
            with contextlib.suppress(Exception):
                loop.join(max(0.0, end - time.monotonic()))

    def _change_waiting(self, uid: str, order: RunOrder) -> None:
        if order.HasField("limits"):
            self._waiting[uid].limits.CopyFrom(order.limits)
        elif order.HasField("cut") or order.HasField("drain"):
            del self._waiting[uid]
            reason = (order.cut.reason or "CUT") if order.HasField("cut") else "DRAINED"
            self._say(uid, COPY_RUN_STATE_ENDED, reason=reason)

    def _open(self, uid: str, ticket: StartTicket, now: float) -> None:
        try:
            loop = self._begin(ticket)
            loop.start()
        except Exception as error:
            # A fault of one connector must not end the slot of the others.
            self._say(
                uid,
                COPY_RUN_STATE_FAILED,
                reason=error.reason if isinstance(error, KeelmanError) else "TASK_FAILED",
                message=str(error) or type(error).__name__,
                trace=traceback.format_exc(),
                # A lack of threads or memory: another slot may have them.
                retriable=isinstance(error, (RuntimeError, OSError, MemoryError)),
            )
        else:
            self._loops[uid] = loop
            self._opening[uid] = now

    def _say(
        self,
        uid: str,
        state: CopyRunState.ValueType,
        *,
        reason: str,
        message: str = "",
        trace: str = "",
        retriable: bool = False,
    ) -> None:
        update = RunUpdate(run_uid=uid, state=state, reason=reason, message=message, trace=trace, retriable=retriable)
        update.time.GetCurrentTime()
        self._report(update)
