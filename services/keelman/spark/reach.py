"""Notes for the agent why slots of a Spark service wait, so that the service's status shows it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from keelman.model.workload import SPARK_STARTING
from keelman.runtime.logs.logging import get_logger
from keelman.spark.slots.shortage import Shortage
from keelman.workers.reach_note import ReachNote

log = get_logger()


class ShortageNote:
    """Keeps the note and logs its changes. Called several times a second."""

    def __init__(self, file: Path | None, shortage: Callable[[], Shortage | None]) -> None:
        """`file` is the note's, None for none."""
        self._file, self._shortage = file, shortage
        self._noted: Shortage | None = None
        self.forget()

    def look(self) -> None:
        """Writes or removes the note when the shortage is another one than before."""
        shortage = self._shortage()
        if shortage is not None and shortage.reason == SPARK_STARTING:
            shortage = None  # a matter of seconds, which is no problem of the service
        if shortage == self._noted:
            return
        if shortage is None:
            log.info("slots_need_not_wait")
        elif self._noted is None or self._noted.reason != shortage.reason:
            log.warning("slots_wait", reason=shortage.reason, error=shortage.message)
        self._noted = shortage
        if shortage is None:
            self.forget()
        elif self._file is not None:
            with contextlib.suppress(OSError):
                ReachNote(os.getpid(), shortage.reason, shortage.message).write(self._file)

    def forget(self) -> None:
        """Removes the note."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)
