"""Does the steps of operations: one state service at a time, each step stored before and after it is done."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from keelman.model.errors import Conflict, DeadlineExceeded, Internal, KeelmanError, Unavailable
from keelman.model.operation import Operation, OperationKind
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.logs.redaction import REDACTOR
from keelman.runtime.supervise import Siblings, wait_or_stop
from keelman.state.database.failpoints import hit
from keelman.state.operations import moves
from keelman.state.operations.kinds import OperationProcedure, StepWork, Work
from keelman.state.replicas.lease import Lease, LeaseLost
from keelman.state.resources.hub import Hub
from keelman.state.resources.snapshot import OPERATION, WORKER_CLUSTER
from keelman.state.resources.store import ResourceStore

log = get_logger()
AT_ONCE = 128
"""The number of steps done at a time; waiting operations do not count."""
AGAIN = (Unavailable, DeadlineExceeded, Conflict)
"""Errors of a step after which another try may succeed."""


async def _unknown(operation: Operation) -> moves.Done:
    raise Internal(f"this state service does not know how to do {operation.kind}", reason="UNKNOWN_STEP")


NO_WORK = StepWork(do=_unknown)


@dataclass(slots=True)
class _Tries:
    """The number of times that a step was tried in this process."""

    count: int = 0
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.2, most=5.0))


@dataclass(slots=True)
class Runner:
    """Does the steps while this process leads, with a store that is fenced by the lease. `wait_seconds`: how long a
    step that has to wait is tried again."""

    store: ResourceStore
    commits: Hub
    lease: Lease
    procedures: Mapping[OperationKind, OperationProcedure]
    wait_seconds: float
    _running: set[str] = field(default_factory=set)
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _tries: dict[tuple[str, int, bool], _Tries] = field(default_factory=dict)

    async def run(self) -> None:
        """Continues every operation that has not ended, many side by side, until cancelled. Raises LeaseLost."""
        hit("operations-led")
        self._running.clear()
        self._tries.clear()
        await self.store.catch_up()
        async with Siblings() as group:
            with self.commits.subscribe(OPERATION) as changed:
                while True:
                    changed.clear()
                    for name in sorted(self.store.snapshot.unfinished_operations - self._running):
                        self._running.add(name)
                        group.start(self._finish(name), name=name)
                    await changed.wait()

    async def _finish(self, name: str) -> None:
        try:
            await self._go_on(name)
        finally:
            self._running.discard(name)
            for key in [key for key in self._tries if key[0] == name]:
                del self._tries[key]

    async def _go_on(self, name: str) -> None:
        backoff = Backoff(first=0.2, most=5.0)
        with self.commits.subscribe((OPERATION, name), *self._awaited(name)) as changed:
            while True:
                changed.clear()
                operation = self.store.snapshot.operations.get(name)
                if operation is None or operation.has_ended:
                    return
                try:
                    pause = await self._move(operation)
                    backoff.reset()
                except LeaseLost:
                    raise
                except KeelmanError as error:  # the database
                    log.warning("operation_waits", operation=name, error=error.message)
                    pause = backoff.next()
                except Exception:
                    log.exception("operation_waits", operation=name)
                    pause = backoff.next()
                changed.clear()  # set by the write above
                present = self.store.snapshot.operations.get(name)
                if pause and present is not None and present.cancel_reason == operation.cancel_reason:
                    await wait_or_stop(changed, pause)

    def _awaited(self, name: str) -> list[Hashable]:
        """Returns the subjects that an operation waits for, beside time: its worker cluster."""
        operation = self.store.snapshot.operations.get(name)
        if operation is None:
            return []
        target = operation.target
        cluster = target.name if target.noun == WORKER_CLUSTER else operation.facts.get("worker_cluster")
        return [(WORKER_CLUSTER, cluster)] if cluster else []

    async def _move(self, operation: Operation) -> float:
        """Does the next thing; returns how many seconds to wait before the one after it."""
        procedure = self.procedures.get(operation.kind, OperationProcedure({}))
        match moves.next_move(operation):
            case moves.Begin(index):
                await self._store(operation, lambda present, now: moves.begun(present, index, now))
                hit("step-begun")
            case moves.Do(index):
                return await self._do(operation, index, procedure.steps.get(operation.steps[index].name, NO_WORK))
            case moves.TurnBack():
                takes_back = procedure.takes_back(operation)
                await self._store(
                    operation, lambda present, now: moves.turned_back(present, now, takes_back=takes_back)
                )
                hit("operation-turned")
            case moves.Undo(index):
                return await self._undo(operation, index, procedure.steps.get(operation.steps[index].name, NO_WORK))
            case moves.End(state):
                await self._store(operation, lambda present, now: moves.ended(present, state, now))
                hit("operation-ended")
                log.info("operation_ended", operation=operation.name, state=str(state))
        return 0.0

    async def _do(self, operation: Operation, index: int, work: StepWork) -> float:
        step, tries = operation.steps[index], self._tries.setdefault((operation.name, index, False), _Tries())
        tries.count += 1
        outcome = await self._try(operation, work.do)
        hit("step-tried")
        attempts = max(step.attempts, tries.count)
        match outcome:
            case moves.Done():
                await self._store(operation, lambda present, now: moves.done(present, index, outcome, attempts, now))
                hit("step-ended")
                return 0.0
            case moves.Waiting():
                assert step.start_time is not None
                return await self._wait(operation, index, outcome, work, attempts)
            case _:
                if not isinstance(outcome, AGAIN):
                    await self._fail(operation, index, outcome, attempts)
                    return 0.0
                waiting = moves.Waiting(outcome.message, tries.backoff.next())
                return await self._wait(operation, index, waiting, work, attempts)

    async def _wait(
        self, operation: Operation, index: int, waiting: moves.Waiting, work: StepWork, attempts: int
    ) -> float:
        seconds = min(self.wait_seconds, work.at_most) if work.seconds is None else work.seconds
        start = operation.steps[index].start_time or operation.create_time
        if self._now() >= (until := start + timedelta(seconds=seconds)):
            text = f"{operation.steps[index].name} took longer than {seconds:g} s: {waiting.message}"
            await self._fail(operation, index, DeadlineExceeded(text, reason="STEP_DEADLINE"), attempts)
            return 0.0
        message = f"{waiting.message}; waits until {_clock(until)}"
        if operation.steps[index].message != message:
            await self._store(operation, lambda present, now: moves.waits(present, index, message, attempts))
        return waiting.seconds

    async def _fail(self, operation: Operation, index: int, error: KeelmanError, attempts: int) -> None:
        log.info("operation_failed", operation=operation.name, step=operation.steps[index].name, error=error.message)
        await self._store(operation, lambda present, now: moves.failed(present, index, error, attempts, now))
        hit("step-failed")

    async def _undo(self, operation: Operation, index: int, work: StepWork) -> float:
        tries = self._tries.setdefault((operation.name, index, True), _Tries())
        outcome = moves.Done() if work.undo is None else await self._try(operation, work.undo)
        hit("undo-tried")
        match outcome:
            case moves.Done():
                await self._store(operation, lambda present, now: moves.undone(present, index, outcome.message, now))
                hit("undo-ended")
                return 0.0
            case moves.Waiting():
                text, pause = outcome.message, outcome.seconds
            case _:
                text, pause = outcome.message, tries.backoff.next()
        until = (operation.back_time or operation.create_time) + timedelta(seconds=self.wait_seconds)
        if self._now() >= until or not isinstance(outcome, (moves.Waiting, *AGAIN)):
            await self._store(operation, lambda present, now: moves.not_undone(present, index, text, now))
            hit("undo-ended")
            return 0.0
        message = f"{operation.steps[index].name} is being taken back: {text}; waits until {_clock(until)}"
        if operation.message != message:
            await self._store(operation, lambda present, now: dataclasses.replace(present, message=message))
        return pause

    async def _try(self, operation: Operation, work: Work) -> moves.Done | moves.Waiting | KeelmanError:
        """Returns the result of one try."""
        await self.lease.confirm()
        try:
            async with self._free:
                return await work(operation)
        except KeelmanError as error:
            return _hidden(error)
        except Exception as error:
            log.exception("operation_crashed", operation=operation.name)
            return _hidden(Internal(f"{type(error).__name__}: {error}"))

    async def _store(self, operation: Operation, change: Callable[[Operation, datetime], Operation]) -> None:
        """Stores the operation with a change to its present version, while this process has the lease."""
        async with self.store.write() as tx:
            present = tx.snapshot.operations.get(operation.name)
            if present is None or present.has_ended:
                return
            changed = change(present, tx.now)
            if changed == present:
                return
            if (procedure := self.procedures.get(operation.kind)) is not None:
                procedure.stored(tx, changed)
            tx.put(changed)

    def _now(self) -> datetime:
        return self.store.database.clock()


def _hidden(error: KeelmanError) -> KeelmanError:
    """Returns the error without secrets that its text may hold: it is stored, and every user can see it."""
    text = REDACTOR.hide(error.message)
    return error if text == error.message else type(error)(text, reason=error.reason)


def _clock(time: datetime) -> str:
    return time.strftime("%H:%M:%S UTC")
