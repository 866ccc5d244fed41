"""One step of one workload: compares what is wanted with what is seen and names the next thing to do.

Pure: no I/O, no clock, no randomness; times are seconds of whatever clock the caller keeps.
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


class Goal(enum.Enum):
    """The state that a workload is to be brought to."""

    RUNNING = "running"
    STOPPED = "stopped"
    REMOVED = "removed"
    UNTOUCHED = "untouched"  # nobody has said yet: leave the process as it is


class Action(enum.Enum):
    """The next thing to do for a workload."""

    NOTHING = "nothing"  # all is as wanted; something must change first
    WAIT = "wait"  # nothing before a certain time
    FETCH = "fetch"  # begin to fetch the plugins that it needs
    PREPARE = "prepare"  # write the files, probe the ports
    START = "start"
    STOP = "stop"  # ask the process to end
    KILL = "kill"  # kill the process and its family
    SWEEP = "sweep"  # kill what an ended process left behind
    REMOVE = "remove"  # delete the folder


class Cause(enum.Enum):
    """Why a process is killed."""

    GRACE = "grace"  # it was asked to end and did not in time
    FORCED = "forced"  # it is not to be asked
    UNHEALTHY = "unhealthy"  # it does not answer any more
    MEMORY = "memory"  # it uses more memory than it may


Plan: TypeAlias = tuple[str, int]  # uid and generation of a workload
NO_PLAN: Plan = ("", 0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted state of a workload, and the plan that asks for it."""

    goal: Goal
    plan: Plan = NO_PLAN
    force: bool = False  # where it is to end, it is killed and not asked


@dataclass(frozen=True, slots=True)
class Seen:
    """The observed state of a workload. `plan` is the one its process was started for."""

    alive: bool = False
    plan: Plan = NO_PLAN
    lacks_plugins: bool = False  # those that it needs are not here yet
    fetching: bool = False  # they are being fetched, and the end of that is reported
    prepared: Plan | None = None  # what files and ports are ready for
    swept: bool = True  # nothing is left of the process before
    folder: bool = True  # its folder may be there
    kill_at: float | None = None  # it was asked to end, or killed, and is killed then
    killed: Cause | None = None  # it was killed already, and its end is awaited
    over_memory: bool = False  # it uses more than it may, and nobody but the agent ends it
    start_at: float = 0.0  # not started before
    give_up_at: float | None = None  # it does not answer, and is killed then


@dataclass(frozen=True, slots=True)
class Step:
    """The next action; `until` is when to look again at the latest, None for only when something changes."""

    action: Action
    until: float | None = None
    cause: Cause | None = None  # of KILL


NOTHING = Step(Action.NOTHING)


def next_step(wanted: Wanted, seen: Seen, now: float) -> Step:
    """The one thing to do now. Doing it and asking again ends in NOTHING or WAIT."""
    if seen.alive:
        return _of_living(wanted, seen, now)
    if not seen.swept:
        return Step(Action.SWEEP)
    if wanted.goal is Goal.REMOVED and seen.folder:
        return Step(Action.REMOVE)
    return _of_absent(wanted, seen, now) if wanted.goal is Goal.RUNNING else NOTHING


def _of_absent(wanted: Wanted, seen: Seen, now: float) -> Step:
    if now < seen.start_at:
        return Step(Action.WAIT, seen.start_at)
    if seen.lacks_plugins:
        return NOTHING if seen.fetching else Step(Action.FETCH)
    return Step(Action.START if seen.prepared == wanted.plan else Action.PREPARE)


def _of_living(wanted: Wanted, seen: Seen, now: float) -> Step:
    if seen.killed is None and (cause := _at_once(wanted, seen)) is not None:
        return Step(Action.KILL, cause=cause)
    if wanted.goal is Goal.UNTOUCHED:
        return NOTHING
    if seen.kill_at is not None:
        return _kill_at(seen.kill_at, now, seen.killed or Cause.GRACE)
    if wanted.goal is Goal.RUNNING and seen.plan != wanted.plan and seen.lacks_plugins:
        return _of_outdated(seen, now)
    if wanted.goal is not Goal.RUNNING or seen.plan != wanted.plan:
        return Step(Action.STOP)
    return NOTHING if seen.give_up_at is None else _kill_at(seen.give_up_at, now, Cause.UNHEALTHY)


def _of_outdated(seen: Seen, now: float) -> Step:
    """It runs on until the plugins of its next process are here."""
    if seen.give_up_at is not None and now >= seen.give_up_at:
        return Step(Action.KILL, cause=Cause.UNHEALTHY)
    until = None if seen.fetching else seen.start_at
    if until is not None and now >= until:
        return Step(Action.FETCH)
    times = [time for time in (until, seen.give_up_at) if time is not None]
    return Step(Action.WAIT, min(times)) if times else NOTHING


def _at_once(wanted: Wanted, seen: Seen) -> Cause | None:
    if seen.over_memory:  # whatever is wanted: the other workloads of the node need what it takes
        return Cause.MEMORY
    return Cause.FORCED if wanted.force and wanted.goal in (Goal.STOPPED, Goal.REMOVED) else None


def _kill_at(time: float, now: float, cause: Cause) -> Step:
    return Step(Action.KILL, cause=cause) if now >= time else Step(Action.WAIT, time)


def restart_delay(failures: int, *, refused: bool = False) -> float:
    """Seconds to wait after the given number of failures in a row: none after the first, then 1 doubling to 30.

    A process that refused what it was given is tried seldom: only what it reads on this host can have changed, since
    another plan is tried at once."""
    if refused:
        return REFUSED_SECONDS
    if failures <= 1:
        return 0.0
    return min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(failures - 2, 16))


def failures_after(failures: int, healthy_seconds: float) -> int:
    """Failures in a row once a process ended that had been healthy for so long: a healthy minute wipes out the past."""
    return 1 if healthy_seconds >= HEALTHY_SECONDS else failures + 1


DRAIN_ORDER = ("worker", "spark", "broker")


def drained_kinds(alive: Iterable[str]) -> frozenset[str]:
    """Kinds to stop now when the whole node is drained: each only when none of the kinds before it runs any more."""
    running = set(alive)
    # A kind that this version does not know stands on everything else: it goes first.
    kinds = [*sorted(running.difference(DRAIN_ORDER)), *DRAIN_ORDER]
    last = next((i for i, kind in enumerate(kinds) if kind in running), len(kinds) - 1)
    return frozenset(kinds[: last + 1])


def may_replace(old: Plan | None, new: Plan) -> bool:
    """Whether an assignment is to be obeyed after the last one seen of its name: not when it is of an older plan."""
    return old is None or old[0] != new[0] or new[1] >= old[1]
