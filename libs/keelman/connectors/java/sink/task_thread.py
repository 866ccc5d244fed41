"""The thread of a Java sink task: as in Connect all task methods are called there, one after the other.
The thread of the copy run waits for each call, and beats meanwhile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from keelman.connect import contract
from keelman.connectors.java.jvm import java_class
from keelman.connectors.java.plugin_loader import PluginLoader
from keelman.engine.control import GaveUp
from keelman.runtime.logs.logging import get_logger

T = TypeVar("T")
LOOK_SECONDS = 0.25
LONG_SECONDS = 30.0
ATTEND_SECONDS = 2.0
DEAF_SECONDS = 5.0

_log = get_logger()


class TaskCall:
    """A call of one of the task's methods. If `dropped`, the call is not made."""

    def __init__(
        self,
        method: str,
        work: Callable[[], Any],
        behind: TaskCall | None = None,
        unless: Callable[[], bool] | None = None,
    ) -> None:
        self.method, self.work = method, work
        self.behind, self._unless = behind, unless
        self.begun = time.monotonic()
        self.done = self.dropped = False
        self.result: Any = None
        self.error: BaseException | None = None

    def drop_after(self, job: TaskCall) -> bool:
        """Drops this call if `job`, the call before it, which has just returned, raised, or if `unless` tells so.
        Returns whether it was dropped."""
        unless = self._unless
        self.dropped = job.error is not None or (unless is not None and unless())
        return self.dropped


class SinkThread:
    """The thread of one task. All methods but `wake` are for the thread of its copy run."""

    def __init__(self, loader: PluginLoader, class_name: str, *, name: str) -> None:
        self.class_name = class_name
        self._loader = loader
        self._changed = threading.Condition()
        self._jobs: deque[TaskCall] = deque()
        self._doing = ""
        self._woken = self._ended = False
        self._java_thread: Any = None
        run = copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name=name, daemon=True)
        self._thread.start()

    def begin(self, method: str, work: Callable[[], Any]) -> TaskCall:
        """Queues work for the task's thread, with its plugin's class loader, behind all earlier work."""
        job = TaskCall(method, work)
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()
        return job

    def follow(self, job: TaskCall, work: Callable[[], Any], *, unless: Callable[[], bool]) -> TaskCall:
        """Calls the same method again as soon as its call returns, without a turn of any other thread between them.
        Does not if that call raised, nor if `unless` returns True when it returns."""
        following = TaskCall(job.method, work, job, unless)
        with self._changed:
            if not job.done or not following.drop_after(job):
                self._jobs.append(following)
                self._changed.notify_all()
        return following

    def withdraw(self, job: TaskCall) -> bool:
        """Withdraws a call. Returns False when it has begun."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                job.dropped = True
            return job.dropped

    def call(
        self,
        method: str,
        work: Callable[[], T],
        *,
        beat: Callable[[], None],
        attend: Callable[[], None] | None = None,
        impatient: Callable[[float], bool] = lambda waited: False,
    ) -> T:
        """Begins work and waits for it."""
        result: T = self.wait(self.begin(method, work), beat=beat, attend=attend, impatient=impatient)
        return result

    def wait(
        self,
        job: TaskCall,
        *,
        beat: Callable[[], None],
        attend: Callable[[], None] | None = None,
        impatient: Callable[[float], bool] = lambda waited: False,
    ) -> Any:
        """Returns the result of a job's work. Raises what it raises.

        Calls `beat` at least every LOOK_SECONDS and after each `wake`; its errors are raised at once. Calls `attend`
        as often once the work takes long, until that raises GaveUp, which is raised when the work has returned.
        Interrupts unfinished work when `impatient`, called with the seconds since the work began, returns True; if the
        work ignores that, the beats stop, so that the slot is ended.
        """
        method, began, gave_up = job.method, job.begun, None
        interrupted_at: float | None = None
        warned = False
        while not self._done(job):
            waited = time.monotonic() - began
            if waited > LONG_SECONDS and not warned:
                warned = True
                _log.warning("java_call_is_long", class_name=self.class_name, method=method, seconds=round(waited))
            if interrupted_at is None and impatient(waited):
                interrupted_at = waited
                self._interrupt(self._doing or method, waited)
            elif interrupted_at is not None and waited - interrupted_at > DEAF_SECONDS:
                self._wait_for_ever(job)
            beat()
            if attend is not None and gave_up is None and waited > ATTEND_SECONDS:
                try:
                    attend()
                except GaveUp as error:
                    gave_up = error
        if gave_up is not None:
            raise gave_up
        if interrupted_at is not None and job.error is not None:
            raise GaveUp from job.error
        if job.error is not None:
            raise job.error
        return job.result

    def _done(self, job: TaskCall) -> bool:
        """Waits briefly for the job, or until `wake`. Returns whether the job is done."""
        with self._changed:
            self._changed.wait_for(lambda: job.done or self._woken, LOOK_SECONDS)
            self._woken = False
            return job.done

    def _interrupt(self, method: str, waited: float) -> None:
        _log.warning("java_task_interrupted", class_name=self.class_name, method=method, seconds=round(waited, 1))
        with suppress(Exception):
            self._java_thread.interrupt()

    def _wait_for_ever(self, job: TaskCall) -> None:
        with contract.standing(f"{self.class_name}.{self._doing or job.method}"), self._changed:
            self._changed.wait_for(lambda: job.done)

    def wake(self) -> None:
        """Makes a waiting caller beat soon. From any thread."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def end(self) -> None:
        """Ends the thread; no call is under way."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join(1.0)

    def _run(self) -> None:
        self._java_thread = java_class("java.lang.Thread").currentThread()
        self._java_thread.setName(self._thread.name)
        with self._loader.entered():
            while (job := self._next()) is not None:
                self._doing, job.behind = job.method, None  # else each call would keep all before it
                contract.note_background(f"{self.class_name}.{job.method}")
                try:
                    job.result = job.work()
                except BaseException as error:
                    job.error = error
                contract.note_background("")
                self._doing = ""
                with self._changed:
                    job.done = True
                    if self._jobs and self._jobs[0].behind is job and self._jobs[0].drop_after(job):
                        self._jobs.popleft()
                    self._changed.notify_all()

    def _next(self) -> TaskCall | None:
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._ended)
            return self._jobs.popleft() if self._jobs else None
