"""Applies each change to a copy run, reports it to its worker, and shows it to the listeners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from keelman.api.copy.v1.copy_run_pb2 import COPY_RUN_STATE_ENDED, COPY_RUN_STATE_FAILED, CopyRun, CopyRunState
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.runtime.logs.logging import get_logger
from keelman.spark.copy_runs.kinds import kind_of
from keelman.spark.copy_runs.leases import Leases
from keelman.spark.copy_runs.runs import Owner, Run, RunBook, fold, opened
from keelman.spark.data_sets.reads import PartRequest

log = get_logger()
MOVED, PARKED = "MOVED", "PARKED"
WAITS = "waits outside a slot for more to copy"


class RunLife:
    """Changes copy runs. Used by the dispatcher only."""

    def __init__(
        self,
        book: RunBook,
        leases: Leases,
        *,
        listeners: Sequence[Callable[[CopyRun], None]],
        ended: Callable[[Run], None],
    ) -> None:
        """Calls `ended` once for each copy run, when it has ended and was filed."""
        self._book, self._leases, self._listeners, self._ended = book, leases, listeners, ended

    def open(self, owner: Owner, order: RunOrder, data: PartRequest | None = None) -> Run:
        """Begins a copy run with its start ticket; it has no slot yet."""
        run = Run(owner, opened(order.start, datetime.now(UTC)), [order], plugin=kind_of(order.start.plugin), data=data)
        run.plugin_runs = max(1, order.start.plugin.runs_per_slot)
        self._book.add(run)
        self._show(run.copy_run)
        return run

    def explain(self, run: Run, reason: str, message: str) -> None:
        """Records the reason for a copy run's present state; empty words when all is well."""
        update = self.last(run)
        update.reason, update.message, update.slot = reason, message, run.copy_run.slot
        update.time.FromDatetime(datetime.now(UTC))
        self.apply(run, update)

    def finish(self, run: Run, reason: str, message: str) -> None:
        """Ends a copy run as it was ordered to."""
        self.apply(run, self._final(run.uid, COPY_RUN_STATE_ENDED, reason, message, retriable=False))

    def fail(self, run: Run, reason: str, message: str) -> None:
        """Ends a copy run by an error that a new ticket can help."""
        self.apply(run, self._final(run.uid, COPY_RUN_STATE_FAILED, reason, message, retriable=True))

    def refuse(self, owner: Owner, uid: str, reason: str, message: str, retriable: bool = True) -> None:
        """Answers an order that cannot be carried out; changes no copy run."""
        self._leases.send(owner, self._final(uid, COPY_RUN_STATE_FAILED, reason, message, retriable=retriable))

    def apply(self, run: Run, update: RunUpdate) -> None:
        """Applies an update and passes it on when it changes anything; a change of the task's watch counts too."""
        if run.parks and not update.message:
            update.message = run.copy_run.message or WAITS  # the reason of its waiting, to its end
        if update.state == COPY_RUN_STATE_ENDED and update.reason == "DRAINED":
            if run.moving:
                update.reason, update.message = MOVED, run.moving
            elif run.parks:
                update.reason = PARKED
        same = run.live and update.state == run.copy_run.state
        changed = same and (update.watch, update.caught_up) != (run.last.watch, run.last.caught_up)
        if not fold(run.copy_run, update, datetime.now(UTC)) and not changed:
            return
        update.slot = run.copy_run.slot
        update.state = run.copy_run.state
        update.progress.CopyFrom(run.copy_run.progress)
        topics = dict.fromkeys([*run.last.topics, *update.topics])
        del update.topics[:]
        update.topics.extend(topics)
        run.last = update
        self._leases.send(run.owner, update)
        self._show(run.copy_run)
        if run.live:
            return
        log.info(
            "copy_run_ended",
            copy_run=run.uid,
            worker_cluster=run.copy_run.worker_cluster,
            connector=run.copy_run.connector,
            task=run.copy_run.task,
            failed=run.copy_run.state == COPY_RUN_STATE_FAILED,
            reason=run.copy_run.reason,
            message=run.copy_run.message,
            records=run.copy_run.progress.records,
        )
        self._book.ended(run)
        self._ended(run)

    def last(self, run: Run) -> RunUpdate:
        """Returns the copy run's present state, as an update for its worker."""
        update = RunUpdate()
        update.CopyFrom(run.last)
        update.run_uid, update.state, update.slot = run.uid, run.copy_run.state, run.copy_run.slot
        return update

    def _show(self, copy_run: CopyRun) -> None:
        for listener in self._listeners:
            listener(copy_run)

    def _final(
        self, uid: str, state: CopyRunState.ValueType, reason: str, message: str, *, retriable: bool
    ) -> RunUpdate:
        update = RunUpdate(run_uid=uid, state=state, reason=reason, message=message, retriable=retriable)
        update.time.FromDatetime(datetime.now(UTC))
        return update
