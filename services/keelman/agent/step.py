"""One step of one workload: compares the wanted with the observed state and names the next action.

Pure: no I/O, no clock, no randomness; times are seconds of the caller's clock.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 30.0
HEALTHY_SECONDS = 60.0
REFUSED_SECONDS = 300.0


class StepGoal(enum.Enum):
    """The target state of a workload."""

    RUNNING = "running"
    STOPPED = "stopped"
    REMOVED = "removed"
    UNTOUCHED = "untouched"  # not known yet: leave the process as it is


class Action(enum.Enum):
    """The next thing to do for a workload."""

    NOTHING = "nothing"  # all is as wanted; something must change first
    WAIT = "wait"  # nothing before a certain time
    FETCH = "fetch"  # begin to fetch the plugins that it needs
    PREPARE = "prepare"  # write the files, probe the ports
    START = "start"
    STOP = "stop"  # tell the process to end
    KILL = "kill"  # kill the process and its family
    SWEEP = "sweep"  # kill the leftovers of an ended process
    REMOVE = "remove"  # delete the folder


class KillCause(enum.Enum):
    """Why a process is killed."""

    GRACE = "grace"  # it was told to end and did not in time
    FORCED = "forced"  # it must end without a grace time
    UNHEALTHY = "unhealthy"  # it does not answer any more
    MEMORY = "memory"  # it uses more memory than its limit


Plan: TypeAlias = tuple[str, int]  # uid and generation of a workload
NO_PLAN: Plan = ("", 0)


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The wanted state of a workload, and the plan that it comes from."""

    goal: StepGoal
    plan: Plan = NO_PLAN
    force: bool = False  # where it has to end, it is killed at once


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The observed state of a workload. `plan` is the plan that its process was started for."""

    alive: bool = False
    plan: Plan = NO_PLAN
    lacks_plugins: bool = False  # the plugins that it needs are not here yet
    fetching: bool = False  # they are being fetched, and the end of that is reported
    prepared: Plan | None = None  # the plan that files and ports are ready for
    swept: bool = True  # nothing is left of the process before
    folder: bool = True  # its folder may be there
    kill_at: float | None = None  # it was told to end, or killed, and is killed at this time
    killed: KillCause | None = None  # it was killed already, and its end is awaited
    over_memory: bool = False  # it uses more than its limit, and only the agent ends it
    start_at: float = 0.0  # not started before
    give_up_at: float | None = None  # it does not answer, and is killed then


@dataclass(frozen=True, slots=True)
class WorkloadStep:
    """The next action; `until`: the latest time of the next look, None: only after a change."""

    action: Action
    until: float | None = None
    cause: KillCause | None = None  # of KILL


NOTHING = WorkloadStep(Action.NOTHING)


def next_step(desired: DesiredState, seen: ObservedState, now: float) -> WorkloadStep:
    """Returns the one thing to do now. Doing it and calling this again ends in NOTHING or WAIT."""
    if seen.alive:
        return _of_living(desired, seen, now)
    if not seen.swept:
        return WorkloadStep(Action.SWEEP)
    if desired.goal is StepGoal.REMOVED and seen.folder:
        return WorkloadStep(Action.REMOVE)
    return _of_absent(desired, seen, now) if desired.goal is StepGoal.RUNNING else NOTHING


def _of_absent(desired: DesiredState, seen: ObservedState, now: float) -> WorkloadStep:
    if now < seen.start_at:
        return WorkloadStep(Action.WAIT, seen.start_at)
    if seen.lacks_plugins:
        return NOTHING if seen.fetching else WorkloadStep(Action.FETCH)
    return WorkloadStep(Action.START if seen.prepared == desired.plan else Action.PREPARE)


def _of_living(desired: DesiredState, seen: ObservedState, now: float) -> WorkloadStep:
    if seen.killed is None and (cause := _at_once(desired, seen)) is not None:
        return WorkloadStep(Action.KILL, cause=cause)
    if desired.goal is StepGoal.UNTOUCHED:
        return NOTHING
    if seen.kill_at is not None:
        return _kill_at(seen.kill_at, now, seen.killed or KillCause.GRACE)
    if desired.goal is StepGoal.RUNNING and seen.plan != desired.plan and seen.lacks_plugins:
        return _of_outdated(seen, now)
    if desired.goal is not StepGoal.RUNNING or seen.plan != desired.plan:
        return WorkloadStep(Action.STOP)
    return NOTHING if seen.give_up_at is None else _kill_at(seen.give_up_at, now, KillCause.UNHEALTHY)


def _of_outdated(seen: ObservedState, now: float) -> WorkloadStep:
    """Lets it run on until the plugins of its next process are here."""
    if seen.give_up_at is not None and now >= seen.give_up_at:
        return WorkloadStep(Action.KILL, cause=KillCause.UNHEALTHY)
    until = None if seen.fetching else seen.start_at
    if until is not None and now >= until:
        return WorkloadStep(Action.FETCH)
    times = [time for time in (until, seen.give_up_at) if time is not None]
    return WorkloadStep(Action.WAIT, min(times)) if times else NOTHING


def _at_once(desired: DesiredState, seen: ObservedState) -> KillCause | None:
    if seen.over_memory:  # whatever the goal: the other workloads of the node need that memory
        return KillCause.MEMORY
    return KillCause.FORCED if desired.force and desired.goal in (StepGoal.STOPPED, StepGoal.REMOVED) else None


def _kill_at(time: float, now: float, cause: KillCause) -> WorkloadStep:
    return WorkloadStep(Action.KILL, cause=cause) if now >= time else WorkloadStep(Action.WAIT, time)


def restart_delay(failures: int, *, refused: bool = False) -> float:
    """Returns the seconds to wait after so many failures in a row: none after the first, then 1 doubling to 30.

    A process that refused its input is tried seldom: only its input on this host can have changed, since another plan
    is tried at once."""
    if refused:
        return REFUSED_SECONDS
    if failures <= 1:
        return 0.0
    return min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 2, 16))


def failures_after(failures: int, healthy_seconds: float) -> int:
    """Returns the failures in a row after a process that was healthy for so long: a healthy minute wipes out the
    past."""
    return 1 if healthy_seconds >= HEALTHY_SECONDS else failures + 1


DRAIN_ORDER = ("worker", "spark", "broker")


def drained_kinds(alive: Iterable[str]) -> frozenset[str]:
    """Returns the kinds to stop now when the node is drained: each only when no kind before it runs any more."""
    running = set(alive)
    # A kind that this version does not know depends on all others: it goes first.
    kinds = [*sorted(running.difference(DRAIN_ORDER)), *DRAIN_ORDER]
    last = next((i for i, kind in enumerate(kinds) if kind in running), len(kinds) - 1)
    return frozenset(kinds[: last + 1])


def may_replace(old: Plan | None, new: Plan) -> bool:
    """Returns whether an assignment may replace the last one of its name: not when it is of an older plan."""
    return old is None or old[0] != new[0] or new[1] >= old[1]
