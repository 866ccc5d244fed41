"""The thread of a Java source task: as in Connect initialize, start, poll and stop are called there, one
after the other; with transactions commitRecord and commit, too, and without them in a thread beside it.

A task that overrides neither commitRecord nor commit is polled ahead: its polls wait in a short queue for the copy run.
A task that does, and copies in transactions, is polled in step: its next poll waits until the last one is sent,
committed where its boundary requires that, and the task was notified. Its next records may depend on that.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from keelman.connect import contract
from keelman.connectors.java.jvm import java_class, jpype
from keelman.connectors.java.logs import in_context
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.connectors.java.source.loops import TaskLoops
from keelman.connectors.java.source.notices import CommittedBatch, Notices, NoticesBeside
from keelman.connectors.java.source.task_calls import TaskCalls
from keelman.runtime.logs.logging import get_logger

MAX_QUEUED = 4_096
"""No further poll while so many records wait, so many bytes or so many polls."""
MAX_QUEUED_BYTES = 4 << 20
MAX_POLLS = 8
START_SECONDS = 300.0
EMPTY_SECONDS = 0.01
"""The pause after a poll that returned nothing at once: some tasks do not wait themselves."""
RETRIES_SAID_SECONDS = 10.0

_log = get_logger()


@dataclass(slots=True)
class Poll:
    """The result of one poll. `acts` has a letter a record for the ends of transactions, in TaskLoops' form;
    `act` is the task's decision on the transaction after all of them."""

    records: Any
    count: int
    acts: str = ""
    act: str = ""


class PollThread:
    """The thread of one task. `poll` and the other methods are for the thread of its copy run."""

    def __init__(
        self,
        loader: PluginLoader,
        task: Any,
        *,
        begin: Callable[[], None],
        loops: TaskLoops,
        transactions: Any,
        exactly_once: bool,
        commit_seconds: float,
        flush_seconds: float,
        failed: Callable[[Any], Exception],
        connector: str,
        number: int,
    ) -> None:
        """Starts the thread. `begin` initializes and starts the task; `failed` converts a Java exception to our error.
        A task polled in step gets its commit called after empty polls too, at most each `commit_seconds`; another task
        each `flush_seconds` and before it is stopped, unless they are infinite."""
        self.class_name = str(task.getClass().getName())
        self.record_bytes = 0.0
        """About how large a record is, once known."""
        self._loader, self._task, self._begin = loader, task, begin
        self._loops, self._transactions, self._failed = loops, transactions, failed
        self._calls = TaskCalls(self.class_name)
        self._notices = Notices(task, loops, self._calls)
        hears = loops.wants_records or loops.wants_commits
        self.in_step = hears and exactly_once
        """Whether it is polled in step."""
        self._commit_seconds, self._commit_at = commit_seconds, time.monotonic() + commit_seconds
        self._is_pending = False
        beside = hears and not exactly_once
        beside_notices = NoticesBeside(self._notices, loader, connector, number, flush_seconds) if beside else None
        self._beside = beside_notices
        self._changed = threading.Condition()
        self._polls: deque[Poll] = deque()
        self._queued = 0
        self._stopping = self._last = self._polling = self._wanted = False
        self._started = False
        self._error: Exception | None = None
        self._java_thread: Any = None
        self._connector, self._number = connector, number
        self._is_preview = math.isinf(flush_seconds)
        self._retries, self._retries_said_at = 0, -RETRIES_SAID_SECONDS
        run, name = copy_context().run, f"task-thread-{connector}-{number}"  # as with Connect
        self._thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)
        self._thread.start()

    def await_start(self, beat: Callable[[], None]) -> None:
        """Returns when the task is started. Raises what its start raised, and what `beat` raises.

        A start that takes minutes counts as hanging: the copy run is then found silent, and its slot ended."""
        until = time.monotonic() + START_SECONDS
        with contract.standing(f"{self.class_name}.start"):
            while not self._started and self._error is None:
                with self._changed:
                    self._changed.wait_for(lambda: self._started or self._error is not None, 0.5)
                if time.monotonic() < until:
                    beat()
        if self._error is not None:
            raise self._error

    def poll(self, seconds: float) -> Poll | None:
        """Returns the next poll, or None after `seconds`; joins waiting polls, unless each may end a transaction."""
        with self._changed:
            if not self._polls and self._error is None:
                self._wanted = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._polls or self._error is not None, seconds)
            polls = [self._polls.popleft()] if self._polls else []
            while polls and self._polls and self._transactions is None:
                polls.append(self._polls.popleft())
            self._queued -= sum(poll.count for poll in polls)
            self._changed.notify_all()
        return _together(polls) if polls else None

    @property
    def error(self) -> Exception | None:
        """The error that ended the task."""
        return self._error

    @property
    def waiting(self) -> bool:
        """Whether there is a poll to take, or an error."""
        return bool(self._polls) or self._error is not None

    def committed(self, committed: Sequence[CommittedBatch]) -> None:
        """Queues the task's notification that these are committed: before its next poll, or beside its polls."""
        if self._beside is not None:
            self._beside.add(committed)
            return
        with self._changed:
            self._notices.add(committed)
            self._is_pending = False
            self._changed.notify_all()

    def poll_no_more(self) -> bool:
        """Makes the current poll the last one. Returns whether any poll has records to take, or may still return
        some."""
        with self._changed:
            self._last = True
            return bool(self._polls) or (self._polling and self._error is None)

    def hangs(self) -> str:
        """Returns the call into the task that has not returned for long, and since when; empty without one."""
        return self._calls.hangs()

    def stop(self, seconds: float, beat: Callable[[], None]) -> None:
        """Stops the task, in its own thread. Interrupts the thread when the task does not return in time.

        If the task ignores that, this does not return: the copy run is then found silent, and its slot ended."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        until = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < until:
            self._thread.join(0.2)
            beat()
        if self._thread.is_alive():
            method = self._calls.oldest
            _log.warning("java_task_interrupted", class_name=self.class_name, method=method, seconds=seconds)
            with suppress(Exception):
                self._java_thread.interrupt()
            with contract.standing(f"{self.class_name}.{method}"):
                self._thread.join()

    def _run(self) -> None:
        self._java_thread = java_class("java.lang.Thread").currentThread()
        self._java_thread.setName(self._thread.name)
        in_context(self._connector, self._number)
        with self._loader.entered():
            try:
                self._calls.make("start", self._begin)
                with self._changed:
                    self._started = True
                    self._changed.notify_all()
                if self._beside is not None:
                    self._beside.begin()
                self._poll_until_stopped()
            except BaseException as error:
                failure = self._failed(error)
                with self._changed:
                    self._error = failure
                    self._changed.notify_all()
                self._hear_until_stopped()
            self._stop_task()

    def _poll_until_stopped(self) -> None:
        while not self._stopping:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._told_here or self._may_poll())
                self._polling = not (self._stopping or self._told_here or self._last)
            if not self._polling:
                self._tell_here()
                continue
            began = time.monotonic()
            try:
                poll = self._poll_of(self._calls.make("poll", self._task.poll))
            except jpype().JException as error:
                if not isinstance(error, _retriable()):
                    raise
                poll = None
                self._note_retry(error)
            with self._changed:
                self._polling = False
                if poll is not None:
                    self._wanted, self._is_pending = False, True
                    self._polls.append(poll)
                    self._queued += poll.count
                    self._changed.notify_all()
            if poll is None:
                self._commit_nothing()
                if time.monotonic() - began < EMPTY_SECONDS:
                    self._rest(EMPTY_SECONDS)
        self._tell_here()

    def _note_retry(self, error: Any) -> None:
        """Counts a retry, and logs it at most each `RETRIES_SAID_SECONDS`: it may happen a hundred times a second."""
        self._retries += 1
        if time.monotonic() - self._retries_said_at >= RETRIES_SAID_SECONDS:
            self._retries_said_at = time.monotonic()
            said, times = str(error.toString()), self._retries
            _log.warning("java_poll_retried", class_name=self.class_name, error=said, times=times)

    def _commit_nothing(self) -> None:
        """Calls the task's commit without records, as Connect ends empty transactions too; a task may rely on it."""
        if self.in_step and not self._is_pending and time.monotonic() >= self._commit_at:
            self._commit_at = time.monotonic() + self._commit_seconds
            self._notices.commit()

    def _hear_until_stopped(self) -> None:
        """Notifies the task after its failure: records polled before the failure are committed all the same."""
        while not self._stopping:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._told_here)
            self._tell_here()

    @property
    def _told_here(self) -> bool:
        """Whether there are notifications for the task's own thread."""
        return self._beside is None and bool(self._notices)

    def _tell_here(self) -> None:
        if self._beside is None:
            self._notices.deliver()

    def _may_poll(self) -> bool:
        return not self._last and (self._wanted if self.in_step else self._has_room())

    def _has_room(self) -> bool:
        """Returns whether the queue has room. One poll may always wait, whatever its size."""
        few = self._queued < MAX_QUEUED and self._queued * self.record_bytes < MAX_QUEUED_BYTES
        return not self._polls or (few and len(self._polls) < MAX_POLLS)

    def _poll_of(self, records: Any) -> Poll | None:
        """Returns a poll with the task's decision on the transaction, which must be read before the next poll."""
        count = 0 if records is None else int(records.size())
        if count:
            records = java_class("java.util.ArrayList")(records)  # a task may use its list again for its next poll
        if self._transactions is None:
            return Poll(records, count) if count else None
        acts = self._loops.acts(records) if count else ""
        aborts, commits = bool(self._transactions.shouldAbortBatch()), bool(self._transactions.shouldCommitBatch())
        act = "a" if aborts else "c" if commits else ""
        return Poll(records, count, acts, act) if count or act else None

    def _stop_task(self) -> None:
        if self._beside is not None:
            self._beside.end()
            if self._started and not self._is_preview:
                self._notices.commit()
        try:
            self._calls.make("stop", self._task.stop)
        except Exception as error:
            _log.warning("java_stop_failed", class_name=self.class_name, error=str(error))

    def _rest(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._told_here, seconds)


def _together(polls: Sequence[Poll]) -> Poll:
    """Joins small polls: the work for each poll would cost more than their records."""
    if len(polls) == 1:
        return polls[0]
    records = java_class("java.util.ArrayList")()
    for poll in polls:
        records.addAll(poll.records)
    return Poll(records, sum(poll.count for poll in polls))


def _retriable() -> tuple[Any, ...]:
    names = ("org.apache.kafka.connect.errors.RetriableException", "org.apache.kafka.common.errors.RetriableException")
    return tuple(java_class(name) for name in names)
