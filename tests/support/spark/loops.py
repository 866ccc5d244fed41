"""A task loop that copies nothing but does all that a slot may order; runs inside slots."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from keelman.api.copy.v1 import copy_run_pb2 as states
from keelman.api.copy.v1.run_order_pb2 import RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.engine.control import Control, CutShort
from keelman.runtime.logs.logging import get_logger

log = get_logger()


class CountingLoop:
    """Commits a line to `file` every 20 ms, each with the time; `mode` silent, refuse or burst makes it misbehave.

    In mode busy it claims to copy a lot; with `module` it begins by importing that module.
    """

    def __init__(
        self,
        ticket: StartTicket,
        tell: Callable[[RunUpdate], None],
        *,
        still_allowed: Callable[[], bool],
        rest: Callable[[], float],
    ) -> None:
        self._ticket, self._tell, self._allowed = ticket, tell, still_allowed
        self._mode = ticket.connector_config.get("mode", "")
        if self._mode == "refuse":
            raise ValueError("file: '' is not legal: a path")
        if "module" in ticket.connector_config:
            importlib.import_module(ticket.connector_config["module"])
        self._file = Path(ticket.connector_config["file"])
        self.control = Control()
        self._is_confirmed = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def silent_seconds(self) -> float:
        return 99.0 if self._mode == "silent" and self._is_confirmed else 0.0

    def standing(self) -> str:
        return "Sleeper.read (sea.py:7)"

    def join(self, timeout: float | None = None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _say(self, state: states.CopyRunState.ValueType, records: int = 0, reason: str = "") -> None:
        update = RunUpdate(run_uid=self._ticket.run_uid, state=state, reason=reason)
        update.progress.records = records
        update.progress.bytes_per_second = 5e6 if self._mode == "busy" else 0
        update.time.GetCurrentTime()
        self._tell(update)

    def _run(self) -> None:
        self._say(states.COPY_RUN_STATE_STARTING)
        self._say(states.COPY_RUN_STATE_FENCED)
        self._records = 0
        try:
            if self.control.await_confirmation() is not None:
                self._is_confirmed = True
                self._count()
        except CutShort as cut:
            self._say(states.COPY_RUN_STATE_ENDED, self._records, cut.reason)
        else:
            self._say(states.COPY_RUN_STATE_ENDED, self._records, "DRAINED")

    def _count(self) -> None:
        self._say(states.COPY_RUN_STATE_RUNNING)
        if self._mode == "burst":
            for self._records in range(200_000):
                self._say(states.COPY_RUN_STATE_RUNNING, self._records)
        while not self.control.draining:
            if self._allowed():
                self._records += 1
                log.debug("counted", copy_run=self._ticket.run_uid)
                with self._file.open("a") as file:
                    file.write(f"{time.time()}\n")
                self._say(states.COPY_RUN_STATE_RUNNING, self._records)
            self.control.wait(0.02)
        self._say(states.COPY_RUN_STATE_DRAINING, self._records)
