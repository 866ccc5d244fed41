"""Reports one copy run to its slot: the one place where a RunUpdate is made."""

from __future__ import annotations

import time
from collections.abc import Callable

from keelman.api.copy.v1.copy_run_pb2 import CopyProgress, CopyRunState
from keelman.api.copy.v1.run_order_pb2 import BulkPart, RunUpdate
from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.watches import Watch
from keelman.engine.watches import to_wire

EVERY_SECONDS = 1.0
DRAINED = "DRAINED"
ALL_READ = "ALL_READ"  # nothing is left to read, ever: the run has ended by itself


class RunReporter:
    """Only the run's thread uses it."""

    def __init__(self, run_uid: str, send: Callable[[RunUpdate], None]) -> None:
        self._run_uid = run_uid
        self._send = send
        self._last = time.monotonic()
        self.topics: list[str] = []
        self.parts: list[BulkPart] = []
        self.caught_up = False
        self.write: WriteJob | None = None
        self.end_reason = DRAINED
        self.final_progress: CopyProgress | None = None

    def due(self) -> bool:
        """Returns whether a second has gone since anything was reported or this was last true: time to look for
        news."""
        now = time.monotonic()
        if now - self._last < EVERY_SECONDS:
            return False
        self._last = now
        return True

    def report(
        self,
        state: CopyRunState.ValueType,
        *,
        reason: str = "",
        message: str = "",
        trace: str = "",
        retriable: bool = False,
        progress: CopyProgress | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Sends one update with the present time; with `watch` the task may be parked until there is more."""
        self._last = time.monotonic()
        update = RunUpdate(
            run_uid=self._run_uid,
            state=state,
            reason=reason,
            message=message,
            trace=trace,
            retriable=retriable,
            topics=self.topics,
            watch=to_wire(watch),
            parts=self.parts,
            caught_up=self.caught_up,
            write=self.write,
        )
        if progress is not None:
            update.progress.CopyFrom(progress)
            self.final_progress = progress
        update.time.GetCurrentTime()
        self._send(update)
