"""Notifies a Java source task of committed records. The task's exceptions are logged and change nothing, as in Connect:
the records are committed.

Connect calls commitRecord and commit of an exactly-once task in the task's own thread, between its polls; without
transactions it does so in other threads, also while the task polls. `Notices` are delivered in the thread that calls
`deliver`, `NoticesBeside` in a separate thread.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from keelman.connectors.java.jvm import jpype
from keelman.connectors.java.logs import in_context
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.source.loops import TaskLoops
from keelman.connectors.java.source.task_calls import TaskCalls
from keelman.runtime.logs.logging import get_logger

_log = get_logger()


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """Committed entries, with the place of the first one; `first` is None if its offset is not known."""

    entries: Any
    topic: str = ""
    partition: int = 0
    first: int | None = None
    now_ms: int = 0


class Notices:
    """The notices of one task, in their order."""

    def __init__(self, task: Any, loops: TaskLoops, calls: TaskCalls) -> None:
        self._task, self._loops, self._calls = task, loops, calls
        self._waiting: deque[Sequence[CommittedBatch]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, committed: Sequence[CommittedBatch]) -> None:
        """Queues notices for the task."""
        self._waiting.append(committed)

    def deliver(self, *, commits: bool = True) -> None:
        """Calls the task with all queued notices, and its commit after each group."""
        while self._waiting:
            committed = self._waiting.popleft()
            if self._loops.wants_records:
                for notice in committed:
                    self._call("commitRecord", lambda notice=notice: self._notify_records(notice))  # type: ignore[misc]
            if commits:
                self.commit()

    def commit(self) -> None:
        """Calls the task's commit."""
        if self._loops.wants_commits:
            self._call("commit", self._task.commit)

    def _call(self, method: str, call: Callable[[], Any]) -> None:
        try:
            self._calls.make(method, call)
        except jpype().JException as error:
            self._log_thrown(method, error)
        for thrown in self._loops.take_thrown():
            self._log_thrown(method, thrown)

    def _log_thrown(self, method: str, error: Any) -> None:
        name, said = f"{self._calls.class_name}.{method}", str(error.toString())
        _log.error("java_commit_failed", method=name, error=said, note="the records are committed, the task continues")

    def _notify_records(self, committed: CommittedBatch) -> None:
        if committed.first is None:
            self._loops.commit_without_place(committed.entries)
        else:
            self._loops.commit(
                committed.entries, committed.topic, committed.partition, committed.first, committed.now_ms
            )


class NoticesBeside:
    """Delivers notices in a separate thread, and calls the task's commit there each `flush_seconds`."""

    def __init__(
        self, notices: Notices, loader: PluginLoader, connector: str, number: int, flush_seconds: float
    ) -> None:
        self._notices, self._loader = notices, loader
        self._connector, self._number, self._flush_seconds = connector, number, flush_seconds
        self._changed = threading.Condition()
        self._stopping = False
        run, name = copy_context().run, f"task-thread-{connector}-{number}-commits"
        self._thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)

    def begin(self) -> None:
        """Starts the thread, once the task is started."""
        self._thread.start()

    def add(self, committed: Sequence[CommittedBatch]) -> None:
        """Queues notices for delivery soon."""
        with self._changed:
            self._notices.add(committed)
            self._changed.notify_all()

    def end(self) -> None:
        """Returns once all notices are delivered."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        in_context(self._connector, self._number)
        due = time.monotonic() + self._flush_seconds
        with self._loader.entered():
            while self._notices or not self._stopping:
                self._notices.deliver(commits=False)
                left = None if due == math.inf else max(0.0, due - time.monotonic())
                with self._changed:
                    self._changed.wait_for(lambda: self._notices or self._stopping, left)
                if time.monotonic() >= due and not self._stopping:
                    due = time.monotonic() + self._flush_seconds
                    self._notices.commit()
