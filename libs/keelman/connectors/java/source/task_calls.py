"""The calls into a Java source task that are under way, thread by thread, to name a call that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from keelman.connect import contract

LONG_SECONDS = 30.0


class TaskCalls:
    """Makes the calls into one task. Each thread has one call at a time."""

    def __init__(self, class_name: str) -> None:
        self.class_name = class_name
        self._under_way: dict[int, tuple[str, float, float]] = {}

    def make(self, method: str, call: Callable[[], Any]) -> Any:
        """Makes a call of this method. Returns its result. Raises what it raises."""
        thread = threading.get_ident()
        self._under_way[thread] = method, time.monotonic(), time.time()
        contract.note_background(f"{self.class_name}.{method}")
        try:
            return call()
        finally:
            del self._under_way[thread]
            contract.note_background("")

    @property
    def oldest(self) -> str:
        """The method of the oldest call under way; empty without one."""
        return self._first()[0]

    def hangs(self) -> str:
        """Returns the call that has not returned for long, and since when; empty without one."""
        method, since, at = self._first()
        if not method or time.monotonic() - since < LONG_SECONDS:
            return ""
        clock = time.strftime("%H:%M:%S", time.gmtime(at))
        return f"waits for {self.class_name}.{method}, which was called at {clock} UTC and has not come back"

    def _first(self) -> tuple[str, float, float]:
        return min(self._under_way.copy().values(), key=lambda call: call[1], default=("", 0.0, 0.0))
