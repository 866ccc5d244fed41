"""Keeps one task of this worker copying: one copy run after the other, parked in between, tried again when that can
help."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.api.copy.v1 import ticket_pb2 as tickets
from keelman.connect.errors import ConnectError
from keelman.connect.watches import Watch
from keelman.model.errors import KeelmanError
from keelman.model.work import Work
from keelman.runtime.logs.logging import get_logger
from keelman.worker.asking.task_config_query import trace_of
from keelman.worker.restart_policy import Attempt, FailureCause, RestartPolicy, Restarts, reason_of, stamp
from keelman.worker.storage import status_state as states
from keelman.worker.tasks.copying import LEFT_OPEN, MOVED, Copying
from keelman.worker.tasks.link import SparkLink
from keelman.worker.tasks.own_statuses import ReportStatus
from keelman.worker.tasks.run_handle import LOST
from keelman.worker.tasks.start_queue import StartQueue
from keelman.worker.tasks.task_host import TaskHost
from keelman.worker.tasks.task_orders import TaskOrders
from keelman.worker.tasks.watermark import Watermark
from keelman.workers.status_notes import WAITS_FOR

log = get_logger()
WAIT_SECONDS = 5.0  # seconds that a task that has to copy may be without a copy run before its status shows it
CONNECT_ERROR = ConnectError.java_name


class CopyTask:
    """Runs as one asyncio task from assignment to revocation; `pause`, `resume`, `restart` and `end` steer it.

    A parked task is this object, its coroutine and its watch: no copy run, no client.
    """

    def __init__(
        self,
        work: Work,
        link: SparkLink,
        host: TaskHost,
        report_status: ReportStatus,
        *,
        grace_seconds: float,
        attempts: int = 0,
        start_queue: StartQueue | None = None,
    ) -> None:
        """`attempts` is the part of its restart budget that it has used elsewhere; `start_queue` is its worker's."""
        self.work = work
        self._host = host
        self._report_status = report_status
        self._orders = TaskOrders()
        self._copying = Copying(
            work,
            self._orders,
            link,
            host,
            grace_seconds=grace_seconds,
            copies=self._copies,
            start_queue=start_queue or StartQueue(),
        )
        self._restarts = Restarts(RestartPolicy(), random.random, attempts)
        self._attempt: Attempt | None = None
        self.state = ""  # as in its status
        self._trace: str | None = None  # as reported
        self._failing = ""  # why copy runs have failed since the last commit
        self._failures = 0  # how many of them
        self._since = time.monotonic()
        self._quiet_since: float | None = None
        self.stalled = False  # there is something to copy and nothing gets copied
        self._repeats = False  # as reported: it fails again and again
        self._waits_for = ""  # as reported
        self._running = False  # the present copy run copies
        self.watermark = Watermark(time.monotonic())
        self.failed = False

    def pause(self) -> None:
        """Drains and stays paused."""
        self._orders.want(states.PAUSED)

    def resume(self) -> None:
        """Copies; the usual state."""
        self._orders.want(states.RUNNING)

    def restart(self) -> None:
        """Ends the copy run, or forgets the failure, and begins a new one, with the whole budget."""
        self.state = self._failing = ""
        self._failures = 0
        self._copying.split_again()
        self._restarts.healthy()
        self._orders.restart()

    def end(self, *, cut: bool = False) -> None:
        """Drains (or cuts) and finishes: `run` returns when the copy run has ended."""
        self._orders.end(cut=cut)

    def update(self, update: orders.RunUpdate) -> None:
        """Takes an update of a present copy run."""
        if (run := self._copying.find(update.run_uid)) is not None:
            if update.HasField("progress") and self.watermark.note(update.run_uid, update.progress, time.monotonic()):
                self._failing, self._failures = "", 0
            run.update(update)

    def lost(self, uid: str) -> None:
        """Notes that a copy run is gone without a report."""
        if (run := self._copying.find(uid)) is not None:
            run.update(LOST)

    def park(self, watches: Sequence[Watch]) -> None:
        """Drains the copy run, which has nothing to copy, and begins a new one at `wake`."""
        self._copying.park(watches)
        self._orders.park()

    def wake(self) -> None:
        """Notes that there is something to copy: the task is no longer parked."""
        self._orders.wake()

    def limit(self, limits: tickets.Limits) -> None:
        """Sets the limits that the present copy runs share from now on."""
        self._copying.limit(limits)

    def linked(self, uid: str) -> None:
        """Notes that the link is up again, and this copy run with it."""
        if (run := self._copying.find(uid)) is not None:
            run.linked()

    def follow_policy(self, policy: RestartPolicy) -> None:
        """Has its failures judged by this policy from now on."""
        self._restarts.policy = policy

    @property
    def watch(self) -> Watch | None:
        """The watch that it waits for while it has nothing to copy; else None."""
        return self._copying.watch

    @property
    def topics(self) -> set[str]:
        """Topics that its copy runs read or wrote."""
        return self._copying.topics

    @property
    def ending(self) -> bool:
        """True once `end` was called."""
        return self._orders.ending

    @property
    def parked(self) -> bool:
        """Whether it continues only at `wake`."""
        return self._orders.parked

    def judge(self, now: float, stall_seconds: float) -> None:
        """Brings the status up to date, once a second. Cheap for a task that is parked or failed."""
        new = self.state == states.UNASSIGNED
        # Of ten thousand that begin together all but a few wait for their turn: that is not reported.
        unasked = self._orders.ending or self._orders.parked or (new and self._copying.behind)
        retried = self.state == states.RESTARTING and bool(self._failing)
        if unasked or not (new or retried or self.state == states.RUNNING):
            self._quiet_since = None
            return
        if self._failing:
            self._judge_stall(now, stall_seconds)
        if retried:
            return
        if not self._running:
            self._quiet_since = now if self._quiet_since is None else self._quiet_since
            if now - self._quiet_since >= WAIT_SECONDS:
                self._report_waiting(self._copying.waits_for or "its slot has not started to copy")
            return
        self._quiet_since = None
        over = self._repeats and not self._failing
        if self._attempt is not None and now - self._since >= self._restarts.policy.reset_seconds:
            self._restarts.healthy()
            self._attempt, over = None, True
        if over:
            self._say()
        self._judge_stall(now, stall_seconds)

    def _judge_stall(self, now: float, stall_seconds: float) -> None:
        """Judges by the time since the last commit, over all copy runs: a task that fails again and again copies
        nothing."""
        stalled = self.watermark.stalled_seconds(now, stall_seconds) is not None
        if stalled == self.stalled:
            return
        names = {**self._names, "left": self.watermark.lag, "reason": self._failing}
        log.warning("task_stalled" if stalled else "task_moves", **names)
        self.stalled = stalled
        self._say()

    def _report_waiting(self, reason: str) -> None:
        """Reports the reason for its waiting; for a task that has not copied yet, each reason once."""
        if self.state == states.UNASSIGNED and reason == self._waits_for:
            return
        self._waits_for = reason
        state = states.UNASSIGNED if self.state == states.UNASSIGNED else states.RESTARTING
        self._report(state, f"{CONNECT_ERROR}: waits for a copy run: {reason}\n")

    @property
    def _names(self) -> dict[str, Any]:
        return {"connector": self.work.connector, "task": self.work.task}

    def _copies(self) -> None:
        now = time.monotonic()
        if not self._running:
            self._running = True
            if not self._failing:
                self.watermark.moved_at = now
            self._quiet_since = None
        news = self._copying.waits_for != self._waits_for
        self._waits_for = self._copying.waits_for
        if self.state != states.RUNNING:  # a task that was parked has never been anything else
            self._since = now
            if self._attempt is not None:
                self._attempt = replace(self._attempt, next="")  # it was this one
            self._report(states.RUNNING, None)
        elif news:
            self._say()

    async def run(self) -> None:
        """Runs for the task's whole life on this worker."""
        orders_ = self._orders
        self._report(states.UNASSIGNED, None)
        while not orders_.ending:
            orders_.again = False
            if orders_.wanted == states.PAUSED:
                slow, self._copying.slow = self._copying.slow, ""
                self._report(states.PAUSED, f"{CONNECT_ERROR}: {slow}\n" if slow else None)
                await orders_.until(lambda: orders_.again or orders_.wanted != states.PAUSED)
                continue
            last = await self._copy()
            if last is None or last.reason == MOVED:
                self._failing, self._failures = "", 0
                continue
            if last.reason in LEFT_OPEN and self._copying.may_write:
                await self._host.fence()
            await self._after(last)

    async def _copy(self) -> orders.RunUpdate | None:
        """As `Copying.once`; a failure before there is a copy run is reported like a copy run's failure."""
        self.watermark.begun(after_failure=bool(self._failing))
        try:
            return await self._copying.once()
        except (KeelmanError, ConnectError) as error:
            reason, passes = reason_of(error)
            text, trace = str(error), trace_of(error)
        except Exception as error:
            # A fault of ours in one task must not end the worker and all its other tasks.
            log.exception("task_crashed", **self._names)
            reason, passes, text, trace = "INTERNAL", False, str(error), traceback.format_exc()
        finally:
            self._running = False
        state = copy.COPY_RUN_STATE_FAILED
        last = orders.RunUpdate(state=state, reason=reason, message=text, trace=trace, retriable=passes)
        self._host.on_failure(last)
        return last

    async def _after(self, last: orders.RunUpdate) -> None:
        """Waits as long as the policy requires after a failure; for good when there is no next attempt."""
        orders_, now = self._orders, time.monotonic()
        healthy = now - self._since if self.state == states.RUNNING else 0.0
        alone = self._copying.alone or last.reason.startswith("PLUGIN_")
        cause, delay = self._restarts.failed(
            last.reason, retriable=last.retriable, alone=alone, healthy_seconds=healthy
        )
        trace = last.trace or f"{CONNECT_ERROR}: {last.message or last.reason}\n"
        names = {**self._names, "reason": last.reason, "error": last.message}
        self._failing = f"{last.reason}: {last.message}" if last.message else last.reason
        self._failures = 1 if healthy >= self._restarts.passing_seconds[1] else self._failures + 1
        if cause is FailureCause.PASSING:
            log.info("copy_run_failed", **names)
            self._report(states.RESTARTING, trace)
            await orders_.until(lambda: orders_.unwanted, seconds=delay)
            return
        self._attempt = Attempt.made(last.reason, self._restarts, delay, datetime.now(UTC))
        log.warning("task_failed", **names, attempts=self._restarts.attempts, next=self._attempt.next)
        self.failed, orders_.again = True, False
        self._report(states.FAILED, self._attempt.explained(trace))
        if delay is None:
            await orders_.until(lambda: orders_.again)
        else:
            await orders_.until(lambda: orders_.again or orders_.wanted != states.RUNNING, seconds=delay)
            if not (orders_.ending or orders_.again) and orders_.wanted != states.RUNNING:
                # A paused task stays failed, as in Connect, and is tried when it is resumed.
                self._attempt = replace(self._attempt, next="")
                self._report(states.FAILED, self._attempt.held(trace))
                await orders_.until(lambda: orders_.again or orders_.wanted == states.RUNNING)
        self.failed = False

    def _report(self, state: str, trace: str | None) -> None:
        if state != states.RUNNING and not (state == states.RESTARTING and self._failing):
            self.stalled = False
        self.state, self._trace = state, trace
        self._say()

    def _say(self) -> None:
        """Writes the present status: the state and the trace that were reported last, with the fields that belong to
        them."""
        self._repeats = self._failures > 1
        self._report_status(self.state, self._trace, self._more())

    def _more(self) -> Mapping[str, object]:
        """Returns the fields of our statuses beyond Connect's."""
        more: dict[str, object] = {}
        if self.stalled:
            since = time.time() - (time.monotonic() - self.watermark.moved_at)
            stalled = {"since": stamp(datetime.fromtimestamp(since, UTC)), "left": self.watermark.lag}
            more["stalled"] = {**stalled, "reason": self._failing} if self._failing else stalled
        if self._attempt is not None and self._restarts.unhealthy:
            more["restart"] = self._attempt.value()
        if self._repeats:
            more["failures"] = {"count": self._failures, "reason": self._failing}
        if self._waits_for and self.state == states.RUNNING:
            more[WAITS_FOR] = self._waits_for
        return more
