"""Counts the results of this worker's connectors and tasks, for /metrics and for reports."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.model.work import Work
from keelman.rpc.times import from_duration
from keelman.worker.storage import status_state as states

BAD_COUNTS = ("failures", "errors", "retries", "logged", "dead_letters", "dead_letter_failures")
NO_FREE_SLOT = "NO_FREE_SLOT"
ENDED = (copy.COPY_RUN_STATE_ENDED, copy.COPY_RUN_STATE_FAILED)


@dataclass(slots=True)
class Meter:
    """One task since this worker has it: totals continue from one copy run to the next; rates are the present copy
    runs', and so is the lag until they have ended."""

    records: int = 0
    bytes: int = 0
    errors: int = 0
    """Records that were passed over."""
    bad: copy.BadRecords = field(default_factory=copy.BadRecords)
    """The other counts of records that could not be copied, over all copy runs."""
    rollbacks: int = 0
    """How often its source has taken back changes that it had given."""
    taken_back: int = 0
    """How many changes those were at most."""
    runs: int = 0
    failures: int = 0
    """Copy runs that ended by an error."""
    commit_ms: int = 0
    """The time of its last commit, in milliseconds since 1970; 0 before the first."""
    level_at: float = 0.0
    """The last time at which it had nothing left to copy, by the monotonic clock; 0 while that is not known."""
    _waiting: str = ""
    """The copy run that found no place in a slot; empty without one."""
    _seen: dict[str, copy.CopyProgress] = field(default_factory=dict)
    _left: tuple[copy.LagUnit.ValueType, int] | None = None
    """The lag of the copy run that ended last, its unit first; it is kept until another reports its own."""

    def note(self, update: orders.RunUpdate, now: float) -> None:
        """Takes an update of a copy run of this task."""
        if update.state == copy.COPY_RUN_STATE_PENDING and update.reason == NO_FREE_SLOT:
            self._waiting = update.run_uid
        elif update.run_uid == self._waiting:
            self._waiting = ""
        if update.HasField("progress"):
            reported = update.progress
            before = self._seen.get(update.run_uid) or copy.CopyProgress()
            self.records += max(0, reported.records - before.records)
            self.bytes += max(0, reported.bytes - before.bytes)
            self.errors += max(0, reported.errors - before.errors)
            self.rollbacks += max(0, reported.rollbacks - before.rollbacks)
            self.taken_back += max(0, reported.taken_back - before.taken_back)
            self._add_bad(before.bad_records, reported.bad_records)
            self._seen[update.run_uid] = reported
            if reported.HasField("commit_time"):
                self.commit_ms = max(self.commit_ms, reported.commit_time.ToMilliseconds())
            if not self.level_at or all(_lag(progress) == 0 for progress in self._seen.values()):
                self.level_at = now
        if update.state == copy.COPY_RUN_STATE_FENCED:
            self.runs += 1
        elif update.state in ENDED:
            self.failures += update.state == copy.COPY_RUN_STATE_FAILED
            last = self._seen.pop(update.run_uid, None)
            if last is not None and not self._seen:
                self._left = last.lag_unit, _lag(last)

    def _add_bad(self, before: copy.BadRecords, reported: copy.BadRecords) -> None:
        for count in BAD_COUNTS:
            more = getattr(reported, count) - getattr(before, count)
            setattr(self.bad, count, getattr(self.bad, count) + max(0, more))
        if reported.HasField("last_time"):
            self.bad.last_time.CopyFrom(reported.last_time)

    @property
    def live(self) -> bool:
        """Whether it has a copy run that has reported its progress."""
        return bool(self._seen)

    @property
    def waits(self) -> bool:
        """Whether it has no copy run because no slot has a place for one."""
        return bool(self._waiting) and not self._seen.keys() - {self._waiting}

    def rates(self) -> tuple[float, float]:
        """Returns records and bytes a second, of all its copy runs."""
        reported = self._seen.values()
        return sum(progress.records_per_second for progress in reported), sum(
            progress.bytes_per_second for progress in reported
        )

    def own_metrics(self) -> Iterator[copy.OwnMetric]:
        """Yields its copy runs' own counts, as they reported them last."""
        for progress in self._seen.values():
            yield from progress.own_metrics

    def set_aside(self) -> Mapping[str, int]:
        """Returns by topic how many partitions its copy runs have set aside."""
        counter: Counter[str] = Counter()
        for progress in self._seen.values():
            counter.update(progress.set_aside)
        return counter

    @property
    def measured(self) -> bool:
        """Whether any copy run, even an ended one, has reported its lag."""
        return any(unit != copy.LAG_UNIT_UNSPECIFIED for unit, _ in self._lags())

    def units(self) -> set[copy.LagUnit.ValueType]:
        """Returns the units of its lag; empty while it is not known."""
        return {unit for unit, lag in self._lags() if unit != copy.LAG_UNIT_UNSPECIFIED and lag >= 0}

    def lag(self, unit: copy.LagUnit.ValueType) -> int:
        """Returns the lag in this unit, as far as it is known; without a copy run the last one's: nothing when the task
        is parked, more when it has failed or is paused."""
        return sum(lag for in_unit, lag in self._lags() if in_unit == unit and lag > 0)

    def lag_seconds(self, now: float) -> float:
        """Returns for how long there has been something left to copy: no remaining record has been here longer."""
        return now - self.level_at if self.level_at and any(lag > 0 for _, lag in self._lags()) else 0.0

    def _lags(self) -> list[tuple[copy.LagUnit.ValueType, int]]:
        if self._seen:
            return [(progress.lag_unit, _lag(progress)) for progress in self._seen.values()]
        return [] if self._left is None else [self._left]

    def seconds_left(self) -> float:
        """Returns the estimated time until nothing is left at the present rate; -1 when it is not known."""
        if not self._seen or not all(progress.HasField("remaining_time") for progress in self._seen.values()):
            return -1.0
        return max(from_duration(progress.remaining_time) for progress in self._seen.values())


def _lag(progress: copy.CopyProgress) -> int:
    """Returns the lag; -1 when it is not known."""
    return progress.lag if progress.HasField("lag") else -1


class Meters:
    """All meters of one worker."""

    def __init__(self) -> None:
        self._tasks: dict[Work, Meter] = {}
        self._starting: set[Work] = set()
        self.started = {False: 0, True: 0}
        """Connectors (False) and tasks (True) that have come to run."""
        self.failed = {False: 0, True: 0}
        """Connectors and tasks that have failed instead."""

    def note(self, work: Work, update: orders.RunUpdate) -> None:
        """Takes an update of a copy run."""
        meter = self._tasks.get(work)
        if meter is None:
            meter = self._tasks[work] = Meter()
        meter.note(update, time.monotonic())

    def count_state(self, work: Work, state: str) -> None:
        """Counts starts that succeed or fail, by the statuses that this worker writes."""
        if state in (states.UNASSIGNED, states.RESTARTING, states.PAUSED, states.STOPPED):
            self._starting.add(work)
        elif state == states.RUNNING:
            self.started[work.is_task] += work in self._starting or not work.is_task
            self._starting.discard(work)
        elif state == states.FAILED:
            self.failed[work.is_task] += work in self._starting or not work.is_task
            self._starting.discard(work)

    def find(self, work: Work) -> Meter | None:
        """Returns the task's meter; None before it has reported anything."""
        return self._tasks.get(work)

    def lag(self, unit: copy.LagUnit.ValueType) -> int:
        """Returns the lag of all tasks in this unit, as far as it is known."""
        return sum(meter.lag(unit) for meter in self._tasks.values())

    def rate(self) -> float:
        """Returns the records that all tasks copy in a second."""
        return sum(meter.rates()[0] for meter in self._tasks.values())

    def waiting(self) -> int:
        """Returns the number of tasks that wait for a place in a slot."""
        return sum(meter.waits for meter in self._tasks.values())

    def live(self) -> int:
        """Returns the number of tasks whose copy runs have reported progress."""
        return sum(meter.live and not meter.waits for meter in self._tasks.values())

    def lags(self) -> dict[str, dict[copy.LagUnit.ValueType, int]]:
        """Returns the lag of each connector here, in each unit that its tasks measure it in."""
        lags: dict[str, dict[copy.LagUnit.ValueType, int]] = {}
        for work, meter in self._tasks.items():
            for unit in meter.units():
                units = lags.setdefault(work.connector, {})
                units[unit] = units.get(unit, 0) + meter.lag(unit)
        return lags

    def keep(self, works: Iterable[Work]) -> None:
        """Forgets all others: they are another worker's, or no worker's."""
        running = set(works)
        for work in self._tasks.keys() - running:
            del self._tasks[work]
        self._starting &= running
