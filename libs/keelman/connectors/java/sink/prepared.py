"""Holds a batch that a Java sink task is given next: its records in Java are made, and may be put by themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from keelman.connect.records import SinkBatch
from keelman.connectors.java.consumer.records import JavaRecords
from keelman.connectors.java.sink.task_thread import SinkThread, TaskCall


@dataclass(frozen=True, slots=True)
class PreparedPut:
    """The batch, its records, what puts them, and the call that does so behind the put that was under way when they
    were made; None where none was."""

    batch: SinkBatch
    records: JavaRecords
    put: Callable[[], Any]
    ahead: TaskCall | None

    def begun(self, thread: SinkThread) -> TaskCall:
        """The call that puts them: it has begun by itself, or begins now."""
        return thread.begin("put", self.put) if self.ahead is None or self.ahead.dropped else self.ahead

    def hold_back(self, thread: SinkThread) -> bool:
        """Has them not put by themselves; False where that has begun."""
        return self.ahead is None or thread.withdraw(self.ahead)
