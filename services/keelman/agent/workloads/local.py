"""Holds the known state of a workload on its node: its process, its health, how it last ended, and the status made of
that."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from keelman.agent.plugins import files_of
from keelman.agent.step import (
    NO_PLAN,
    DesiredState,
    KillCause,
    ObservedState,
    Plan,
    StepGoal,
    failures_after,
    restart_delay,
)
from keelman.agent.workloads.commands import PreparedProcess
from keelman.api.node.v1.workload_pb2 import LogProblem, Workload, WorkloadGoal, WorkloadState, WorkloadStatus
from keelman.model.errors import InvalidArgument
from keelman.model.workload import (
    NO_LIMITS,
    PLUGIN_BROKEN,
    PLUGIN_FETCHING,
    PLUGIN_PROBLEMS,
    REFUSED,
    START_QUEUED,
    UNHEALTHY,
    ResourceLimits,
)
from keelman.rpc.times import to_timestamp
from keelman.runtime.processes.children import Child, ChildRecord, Exit
from keelman.workers.reach_note import ReachNote

GOALS = {
    WorkloadGoal.WORKLOAD_GOAL_RUNNING: StepGoal.RUNNING,
    WorkloadGoal.WORKLOAD_GOAL_STOPPED: StepGoal.STOPPED,
    WorkloadGoal.WORKLOAD_GOAL_REMOVED: StepGoal.REMOVED,
}
FAULT = "FAULT"
"""Reason while a step of its loop fails, such as preparing its folder; the step is tried again."""
QUEUED = "starts once other workers of this node have started (agent.starts_at_once)"
WRONG_USAGE = 2
"""Exit code of a service with impossible settings."""
WORDS_OF_KILLED = {
    KillCause.GRACE: "did not end in time and was killed",
    KillCause.FORCED: "was killed at once, as ordered",
    KillCause.UNHEALTHY: "did not answer its health check and was killed",
    KillCause.MEMORY: "used more memory than it may and was killed",
}


@dataclass(slots=True, eq=False)
class Local:
    """One workload of this node. Written by its loop only; times are of the monotonic clock, in seconds."""

    name: str
    folder: Path
    workload: Workload | None = None  # None: it was not assigned to this agent
    goal: StepGoal = StepGoal.UNTOUCHED
    record: ChildRecord | None = None  # of the running process, or of the last one
    child: Child | None = None
    end_seen: bool = False  # the last process ended under this agent's eyes
    swept: bool = True
    removed: bool = False
    fetched: Plan | None = None  # the plan whose plugins are here
    fetching: Plan | None = None  # the plan whose plugins are being fetched
    fetch_message: str = ""  # how far that is
    fetch_failed: Plan | None = None  # the plan whose plugins could not be had
    prepared: PreparedProcess | None = None
    prepared_plan: Plan | None = None
    kill_at: float | None = None
    start_at: float = 0.0
    queued: bool = False  # it waits for its turn, while others of the node start
    failures: int = 0
    healthy_since: float | None = None
    unwell_since: float | None = None  # it was healthy before
    unwell_seconds: float = 0.0  # for how long it may be so; 0: for ever
    reach: ReachNote | None = None  # its process runs, but does not reach a service that it needs
    failed: bool = False
    failed_plan: Plan = NO_PLAN  # the plan that failed: a newer plan has not
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    memory_bytes: int = 0
    over_memory: str = ""  # words about it, once it uses more memory than its limit
    killed: KillCause | None = None  # the last process was killed by this agent
    log_lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while its log is cut
    log_problem: str = ""  # why it could not be
    log_problems: list[LogProblem] = field(default_factory=list)  # where its log cannot be delivered
    observe_time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def kind(self) -> str:
        """broker, spark, worker: the first part of its name."""
        return self.name.partition("/")[0]

    @property
    def tenant(self) -> str:
        """The tenant whose user it runs as; empty for the node's user for all workloads."""
        if self.workload is None or self.kind not in ("spark", "worker"):
            return ""
        return str(getattr(self.workload.spec, self.kind).tenant)

    @property
    def generation(self) -> int:
        """The generation of the assigned workload; of the process when nothing is assigned."""
        if self.workload is not None:
            return self.workload.generation
        return self.record.generation if self.record else 0

    @property
    def plan(self) -> Plan:
        """The plan of the assigned workload."""
        return (self.workload.uid, self.workload.generation) if self.workload is not None else NO_PLAN

    @property
    def limits(self) -> ResourceLimits:
        """The limits of the workload with all that it starts."""
        limits = self.workload.limits if self.workload is not None else None
        return ResourceLimits(limits.cpus, limits.memory_bytes) if limits is not None else NO_LIMITS

    def wanted(self) -> DesiredState:
        """Returns the wanted state for the step function."""
        return DesiredState(self.goal, self.plan, force=self.workload is not None and self.workload.force)

    def seen(self) -> ObservedState:
        """Returns the observed state for the step function."""
        return ObservedState(
            alive=self.child is not None,
            plan=(self.record.uid, self.record.generation) if self.record else NO_PLAN,
            lacks_plugins=self.lacks_plugins,
            fetching=self.is_fetching,
            prepared=self.prepared_plan,
            swept=self.swept,
            folder=not self.removed,
            kill_at=self.kill_at,
            killed=self.killed,
            over_memory=bool(self.over_memory),
            start_at=self.start_at,
            give_up_at=self._give_up_at,
        )

    @property
    def lacks_plugins(self) -> bool:
        """Whether plugins have to be fetched before its next process."""
        return self.fetched != self.plan and bool(files_of(self.workload))

    @property
    def is_fetching(self) -> bool:
        """Whether the plugins of its present plan are being fetched."""
        return self.fetching is not None and self.fetching == self.plan and self.goal is StepGoal.RUNNING

    def note_fetching(self, message: str) -> bool:
        """Notes the progress of a fetch, for people; returns whether it is news. A former failure is tried again."""
        news = message != self.fetch_message
        self.fetch_message = message
        return news

    def note_fetched(self, plan: Plan) -> None:
        """Notes that the plugins of a plan are here."""
        self.fetched, self.fetching, self.fetch_message, self.fetch_failed = plan, None, "", None
        if self.reason in PLUGIN_PROBLEMS and self.child is not None:
            self.failed, self.reason, self.message = False, "", ""

    def could_not_fetch(self, reason: str, message: str, now: float) -> None:
        """Notes that the plugins of its plan cannot be had, or unpacked; this is tried again later."""
        self.fetching, self.fetch_message, self.fetch_failed = None, "", self.plan
        self.could_not_start(reason, message, now)
        if self.child is not None:
            self.message += "; its former process runs on"

    @property
    def _give_up_at(self) -> float | None:
        """None for a broker, which is never given up: its log would have to recover, and it may be doing just that."""
        if self.unwell_since is None or not self.unwell_seconds or self.kind == "broker":
            return None
        return self.unwell_since + self.unwell_seconds

    def note_end(self, end: Exit, last_line: str, now: float, *, seen: bool) -> None:
        """Notes the end of its process. Sets the time of the next start, if it is wanted, and the words for people.

        A process that ended in order while no agent ran had been told to end, for example by `keelman down`.
        """
        stopping = self.kill_at is not None and self.killed not in (KillCause.UNHEALTHY, KillCause.MEMORY)
        expected = stopping or self.goal in (StepGoal.STOPPED, StepGoal.REMOVED) or (end.code == 0 and not seen)
        healthy = now - self.healthy_since if self.healthy_since is not None else 0.0
        was_ready = self.healthy_since is not None or self.unwell_since is not None
        self.child, self.kill_at, self.healthy_since, self.memory_bytes = None, None, None, 0
        self.unwell_since, over_memory, self.over_memory, self.reach = None, self.over_memory, "", None
        self.swept, self.end_seen = False, seen
        self.prepared, self.prepared_plan, self.fetched = None, None, None
        self.exit_code = end.code
        if expected:
            self.failed, self.reason, self.message = False, "", ""
            if self.killed is not None:
                self.message = WORDS_OF_KILLED[self.killed]
                self.reason = "KILLED"
            return
        self.failures = failures_after(self.failures, healthy)
        refused = not was_ready and was_refused(end)
        self.start_at = now + restart_delay(self.failures, refused=refused)
        self.failed, self.reason = True, end.reason or ("EXITED" if end.code is not None else "VANISHED")
        self.failed_plan = (self.record.uid, self.record.generation) if self.record else self.plan
        if refused and self.reason != PLUGIN_BROKEN:
            self.reason = REFUSED
        self.message = words_of(end, last_line, seen=seen)
        if self.killed is KillCause.UNHEALTHY:
            self.reason = UNHEALTHY
            self.message = f"did not answer its health check for {self.unwell_seconds:g} s and was killed"
        elif over_memory:
            self.reason, self.message = "MEMORY_LIMIT", over_memory

    def could_not_start(self, reason: str, message: str, now: float) -> None:
        """Notes a start that failed before there was a process. The second such failure in a row waits too."""
        self.prepared, self.prepared_plan = None, None
        self.failures = max(2, self.failures + 1)
        self.start_at = now + restart_delay(self.failures)
        self.failed, self.failed_plan, self.message = True, self.plan, message
        self.reason = REFUSED if reason == InvalidArgument.reason else reason

    def note_health(self, answers: bool, now: float) -> bool:
        """Notes whether it answers its health check; returns whether that is news."""
        if answers == (self.healthy_since is not None):
            return False
        if answers:
            self.healthy_since, self.unwell_since = now, None
            self.failed, self.reason, self.message = False, "", ""
        else:
            self.healthy_since, self.unwell_since = None, now
            self.reason, self.message = UNHEALTHY, "runs but no longer answers its health check"
        return True

    def note_fault(self, message: str) -> None:
        """Notes that a step towards the wanted state failed."""
        self.reason, self.message = FAULT, message

    def note_reach(self, note: ReachNote | None) -> bool:
        """Notes why its brokers or its Spark service are out of its reach, if they are; returns whether that is
        news."""
        news, self.reach = note != self.reach, note
        return news

    def state(self, *, draining: bool) -> WorkloadState.ValueType:
        """Returns its state, in the words of the wire."""
        if self.child is not None:
            return self._state_of_process()
        if self.goal is StepGoal.REMOVED:
            return WorkloadState.WORKLOAD_STATE_REMOVED if self.removed else WorkloadState.WORKLOAD_STATE_STOPPED
        if self.goal in (StepGoal.STOPPED, StepGoal.UNTOUCHED) or draining:
            return WorkloadState.WORKLOAD_STATE_STOPPED
        if self.failed and not self.is_fetching and not self._failed_before:
            return WorkloadState.WORKLOAD_STATE_FAILED
        preparing = self.prepared is not None or self.is_fetching
        return WorkloadState.WORKLOAD_STATE_PREPARING if preparing else WorkloadState.WORKLOAD_STATE_PENDING

    def _state_of_process(self) -> WorkloadState.ValueType:
        if self.kill_at is not None:
            return WorkloadState.WORKLOAD_STATE_STOPPING
        if self._is_held_up:
            return WorkloadState.WORKLOAD_STATE_FAILED
        ready = self.healthy_since is not None
        return WorkloadState.WORKLOAD_STATE_RUNNING if ready else WorkloadState.WORKLOAD_STATE_STARTING

    @property
    def _failed_before(self) -> bool:
        """Whether an earlier plan failed, and the present one has yet to be tried."""
        return self.failed and self.child is None and self.goal is StepGoal.RUNNING and self.failed_plan != self.plan

    @property
    def _is_held_up(self) -> bool:
        """Whether its process is of an older plan, since the plugins of the present one cannot be had."""
        outdated = self.record is not None and (self.record.uid, self.record.generation) != self.plan
        return outdated and self.goal is StepGoal.RUNNING and self.fetch_failed == self.plan and self.failed

    def status(self, *, draining: bool) -> WorkloadStatus:
        """Returns its reported status."""
        of_process = self.child is not None and not (self._is_held_up and self.kill_at is None)
        status = WorkloadStatus(
            state=self.state(draining=draining),
            generation=self.record.generation if of_process and self.record else self.generation,
            pid=self.child.pid if self.child else None,
            restarts=self.record.restarts if self.record else 0,
            exit_code=self.exit_code,
            message=self.message,
            reason=self.reason,
            observe_time=to_timestamp(self.observe_time),
            memory_bytes=self.memory_bytes,
            limited_by=self.record.limited_by if self.child and self.record else "",
            log_problems=self.log_problems,
        )
        if self._failed_before and self.reason != FAULT:
            status.reason = status.message = ""
        if of_process and self.reach is not None and not status.reason:
            status.reason, status.message = self.reach.reason, self.reach.message
        if self.is_fetching and not (self.child is not None and self.reason):
            status.reason, status.message = PLUGIN_FETCHING, self.fetch_message
        if self.queued and status.state == WorkloadState.WORKLOAD_STATE_PREPARING:
            status.reason, status.message = START_QUEUED, QUEUED
        if draining and not self.child and self.goal is not StepGoal.REMOVED and not self.message:
            status.reason, status.message = "DRAINED", "this node was drained: start its agent again to continue"
        if self.child and self.record:
            status.start_time.FromDatetime(datetime.fromtimestamp(self.record.start_time, UTC))
        return status

    def new_record(self, command: tuple[str, ...]) -> ChildRecord:
        """Returns the record to store for the next process. The first after a placement has no restarts."""
        uid = self.workload.uid if self.workload else ""
        restarts = 0
        if self.record is not None and self.record.uid == uid:
            restarts = self.record.restarts + (1 if self.failed and self.record.pid else 0)
        return ChildRecord(name=self.name, uid=uid, generation=self.generation, restarts=restarts, command=command)


def was_refused(end: Exit) -> bool:
    """Returns whether a process ended because it refused its input: by its exit record or, if it ended before it could
    leave one, by its exit code."""
    return end.reason in (InvalidArgument.reason, PLUGIN_BROKEN) or (not end.reason and end.code == WRONG_USAGE)


def words_of(end: Exit, last_line: str, *, seen: bool) -> str:
    """Returns how a process ended, for people: its own error, else its exit and the last line of its log."""
    if end.message:
        return end.message
    if end.code is None:
        how = (
            "ended while it was not this agent's child and left no exit record: it was killed"
            if seen
            else ("ended while no agent was there and left no exit record: it was killed")
        )
    elif end.code < 0:
        how = f"was ended by {_signal_name(-end.code)}"
    else:
        how = f"ended by itself with exit code {end.code}"
    return f"{how}; last line of its log: {last_line}" if last_line else how


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
