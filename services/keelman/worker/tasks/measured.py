"""Measures the work of each task by its copy runs and its slots, and reports it to the group as weights.

A weight is 1 for a task that hardly works, else a power of two: 2 from 50 thousandths of a processor, 4 from 100, and
so on. Such coarse weights stay the same while a task's work goes up and down a little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from keelman.api.copy.v1 import copy_run_pb2 as copy
from keelman.api.copy.v1 import run_order_pb2 as orders
from keelman.model.work import Work

SAMPLE_SECONDS = 5.0
KNOWN_SECONDS = 15.0  # a task is not judged by its start
SMOOTHING = 0.25
MIN_USE = 5.0  # thousandths of a processor: below it a task counts as doing nothing, and is looked at no more
FIRST_STEP = 50.0  # thousandths of a processor from which a task weighs 2
MARGIN = 1.3  # the factor by which it has to be over or under a step to pass it
# The cost of copying where the slots' processors are not known: records and bytes a second for a thousandth of one.
RECORDS, BYTES = 500.0, 100_000.0
SHARE_SECONDS = 300.0
SHARE_WEIGHT = 16


@dataclass(slots=True)
class _Run:
    work: Work
    units: float = 0.0
    sampled: float = 0.0


@dataclass(slots=True)
class _Task:
    since: float
    use: float = 0.0
    weight: int = 1


class Measured:
    """One worker's measures. Takes updates as they come and samples now and then; read at each round of the group."""

    def __init__(self, cpu_seconds: Callable[[], float]) -> None:
        """`cpu_seconds` returns the total use of the worker's slots, 0 while that is not known."""
        self._cpu_seconds = cpu_seconds
        self._runs: dict[str, _Run] = {}
        self._tasks: dict[Work, _Task] = {}
        self._works: object = None  # the works of the last sample
        self._moving: set[Work] = set()  # tasks that did anything lately: most of thousands did not
        self._sampled: float | None = None
        self._cpu = 0.0
        self._shared: Mapping[Work, int] = {}
        self._shared_at = 0.0

    def note(self, work: Work, update: orders.RunUpdate) -> None:
        """Takes an update of a task's copy run."""
        if update.state in (copy.COPY_RUN_STATE_ENDED, copy.COPY_RUN_STATE_FAILED):
            self._runs.pop(update.run_uid, None)
        elif update.HasField("progress"):
            run = self._runs.setdefault(update.run_uid, _Run(work))
            run.units = update.progress.records / RECORDS + update.progress.bytes / BYTES

    def ended(self, uid: str) -> None:
        """Forgets a copy run of which no more reports come: it may have been lost without a last update."""
        self._runs.pop(uid, None)

    def sample(self, now: float, works: Iterable[Work]) -> None:
        """Measures the work since the last sample. May be called at any rate; `now` is of a monotonic clock."""
        if self._sampled is not None and now - self._sampled < SAMPLE_SECONDS:
            return
        if works is not self._works:
            self._works, mine = works, {work for work in works if work.is_task}
            for gone in self._tasks.keys() - mine:
                del self._tasks[gone]
            for work in mine - self._tasks.keys():
                self._tasks[work] = _Task(now)
        done: dict[Work, float] = {}
        for run in self._runs.values():
            done[run.work] = done.get(run.work, 0.0) + max(0.0, run.units - run.sampled)
            run.sampled = run.units
        before, self._sampled = self._sampled, now
        cpu_seconds = self._cpu_seconds()
        used, self._cpu = max(0.0, cpu_seconds - self._cpu), cpu_seconds
        if before is None:
            return
        whole = sum(done.values())
        scale = 1000 * used / whole if used and whole else 1.0
        for work in [work for work in self._moving | done.keys() if work in self._tasks]:
            task, use = self._tasks[work], done.get(work, 0.0) * scale / (now - before)
            task.use += SMOOTHING * (use - task.use)
            task.weight = weight_of(task.use, task.weight)
            if task.use < MIN_USE:
                task.use = 0.0
                self._moving.discard(work)
            else:
                self._moving.add(work)
        self._moving &= self._tasks.keys()

    def weights(self, now: float, works: Iterable[Work]) -> dict[Work, int]:
        """Returns the weights for the group: no entry for a weight of 1, 0 for a task that is not known yet."""
        weights: dict[Work, int] = {}
        for work in works:
            task = self._tasks.get(work)
            is_known = task is not None and now - task.since >= KNOWN_SECONDS
            weight = task.weight if task is not None and is_known else 0
            if work.is_task and weight != 1:
                weights[work] = weight
        self._shared, self._shared_at = {work: weight for work, weight in weights.items() if weight > 1}, now
        return weights

    def has_news(self, now: float) -> bool:
        """Returns whether the tasks' weights differ so much from those known to the group that a round of the group may
        pay."""
        if now - self._shared_at < SHARE_SECONDS:
            return False
        weighed = {work: self._tasks[work].weight for work in self._moving}  # a task that does not move weighs 1
        either = weighed.keys() | (self._shared.keys() & self._tasks.keys())
        apart = sum(abs(weighed.get(work, 1) - self._shared.get(work, 1)) for work in either)
        whole = len(self._tasks) + sum(weighed.values()) - len(weighed)
        return apart >= max(SHARE_WEIGHT, whole // 4)


def weight_of(use: float, before: int = 1) -> int:
    """Returns the weight for a use in thousandths of a processor; `before` stays unless the weight is clearly
    another."""
    for bent in (use / MARGIN, use * MARGIN):
        if _step(bent) == before:
            return before
    return _step(use)


def _step(use: float) -> int:
    return 1 if use < FIRST_STEP else 2 << int(math.log2(use / FIRST_STEP))
