"""The copy runs of this service as pure data: their changes by updates, their retention, and their owners.

No I/O and no clock; times come with the calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_ENDED,
    COPY_RUN_STATE_FAILED,
    COPY_RUN_STATE_PENDING,
    COPY_RUN_STATE_UNSPECIFIED,
    CopyRun,
)
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.spark.data_sets.reads import PartRequest

KEPT_ENDED = 10
KEPT_TASKS = 5_000
FINAL = frozenset({COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED})


@dataclass(frozen=True, slots=True)
class Owner:
    """One start of one worker process."""

    worker_cluster: str
    worker: str
    incarnation: str

    @property
    def address(self) -> tuple[str, str]:
        """The same for every incarnation of the worker."""
        return self.worker_cluster, self.worker


@dataclass(slots=True)
class Run:
    """A copy run and the state that the service needs to carry it out."""

    owner: Owner
    copy_run: CopyRun
    # Orders that came before there was a slot, the start ticket first. Holds secrets: emptied when they are passed on.
    waiting: list[RunOrder] = field(default_factory=list)
    last: RunUpdate = field(default_factory=RunUpdate)
    plugin: str = ""  # folder of its connector's plugin; empty for our own connectors
    plugin_runs: int = 1  # how many copy runs of that plugin may share a slot
    data: PartRequest | None = None  # the part of a data set that it copies
    writes: int = 0  # number of the last write job
    held: bool = False  # waits for Spark's answer about its data set
    moving: str = ""  # why it is drained without an order of its worker
    parks: bool = False  # is drained since its task has nothing to copy

    @property
    def task(self) -> tuple[str, str, int]:
        """Worker cluster, connector and number: the same for every copy run of the task."""
        return self.copy_run.worker_cluster, self.copy_run.connector, self.copy_run.task

    @property
    def uid(self) -> str:
        """The copy run's uid."""
        return self.copy_run.uid

    @property
    def split(self) -> bool:
        """Whether it copies a part of its task's backlog."""
        return self.copy_run.part > 0 or len(self.last.parts) > 0

    @property
    def live(self) -> bool:
        """Whether it has not ended."""
        return self.copy_run.state not in FINAL


def opened(ticket: StartTicket, now: datetime) -> CopyRun:
    """Returns the copy run that a start ticket begins."""
    run = CopyRun(
        uid=ticket.run_uid,
        worker_cluster=ticket.worker_cluster,
        connector=ticket.connector,
        task=ticket.task,
        part=ticket.bulk.part,
        worker_id=ticket.worker_id,
        state=COPY_RUN_STATE_PENDING,
    )
    run.create_time.FromDatetime(now)
    run.update_time.FromDatetime(now)
    run.progress.SetInParent()
    return run


def fold(run: CopyRun, update: RunUpdate, now: datetime) -> bool:
    """Applies a slot's report to the copy run; returns False when it changed nothing.

    States only move forward and an ended copy run keeps its end, since updates of a lost slot may still come. Progress
    never goes back either.
    """
    if run.state in FINAL or not COPY_RUN_STATE_UNSPECIFIED <= update.state <= COPY_RUN_STATE_FAILED:
        return False
    changed = False
    if update.state > run.state:
        run.state, run.reason, run.message = update.state, update.reason, update.message
        changed = True
    elif update.state == run.state and (run.reason, run.message) != (update.reason, update.message):
        run.reason, run.message = update.reason, update.message
        changed = True
    if update.HasField("progress") and update.progress.records >= run.progress.records:
        changed = changed or update.progress != run.progress
        run.progress.CopyFrom(update.progress)
    if run.state in FINAL:
        run.progress.ClearField("own_metrics")  # they are of a running task, and ended copy runs are kept
    if changed:
        run.update_time.FromDatetime(now)
    return changed


class RunBook:
    """All copy runs of this service that have not ended, and the last ten ended ones of each task."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._live: dict[str, Run] = {}  # of thousands that are kept few have not ended, and those are looked at often
        self._ended: dict[tuple[str, str, int], deque[str]] = {}

    def add(self, run: Run) -> None:
        """Adds a new copy run; its uid must be new."""
        self._runs[run.uid] = self._live[run.uid] = run

    def get(self, uid: str) -> Run | None:
        """Returns the copy run of this uid."""
        return self._runs.get(uid)

    def ended(self, run: Run) -> None:
        """Files a copy run that has ended; forgets the oldest beyond ten of its task, and tasks of long ago."""
        run.waiting.clear()
        run.last.ClearField("watch")
        self._live.pop(run.uid, None)
        ended = self._ended.pop(run.task, deque())
        self._ended[run.task] = ended
        ended.append(run.uid)
        if len(ended) > KEPT_ENDED:
            self._runs.pop(ended.popleft(), None)
        if len(self._ended) > KEPT_TASKS:
            for uid in self._ended.pop(next(iter(self._ended))):
                self._runs.pop(uid, None)

    def live(self, owner: Owner | None = None) -> list[Run]:
        """Returns copy runs that have not ended, of one owner or of all."""
        return [r for r in self._live.values() if r.live and (owner is None or r.owner == owner)]

    def among(self, uids: Iterable[str]) -> list[Run]:
        """Returns those of these copy runs that have not ended, in the order of their uids."""
        runs = [self._runs.get(uid) for uid in sorted(uids)]
        return [run for run in runs if run is not None and run.live]

    def pending(self) -> list[Run]:
        """Returns copy runs without a slot, in the order of their tickets."""
        return [r for r in self._live.values() if r.live and not r.copy_run.slot and not r.held]

    def matching(self, worker_cluster: str, connector: str, *, include_ended: bool) -> Iterator[CopyRun]:
        """Yields copy runs of a worker cluster and a connector; empty names mean all."""
        for run in (self._runs if include_ended else self._live).values():
            if (include_ended or run.live) and matches(run.copy_run, worker_cluster, connector):
                yield run.copy_run

    def __len__(self) -> int:
        return len(self._runs)


def matches(run: CopyRun, worker_cluster: str, connector: str) -> bool:
    """Returns whether a filter lets the copy run through; empty names mean all."""
    return worker_cluster in ("", run.worker_cluster) and connector in ("", run.connector)
