"""The slot's handle of one copy run: a thread that copies, its control, and methods to watch it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from contextvars import copy_context
from types import FrameType

from keelman.api.copy.v1.copy_run_pb2 import (
    COPY_RUN_STATE_ENDED,
    COPY_RUN_STATE_FAILED,
    COPY_RUN_STATE_RUNNING,
    COPY_RUN_STATE_STARTING,
)
from keelman.api.copy.v1.run_order_pb2 import RunOrder, RunUpdate
from keelman.api.copy.v1.ticket_pb2 import StartTicket
from keelman.connect.config.copying_keys import CONNECTOR_HEAP, CONNECTOR_OPTIONS, JVM_HEAP, JVM_OPTIONS, SLOT_MEMORY
from keelman.connect.contract import DATA_SINK, standing_of
from keelman.connect.expected import WrongAnswer
from keelman.connect.plugin import Connector, Direction
from keelman.connect.policy.folders import hold_files
from keelman.engine.control import Control, CutShort
from keelman.engine.failure import judge, raised, release
from keelman.engine.reporter import RunReporter
from keelman.engine.sink.copy import SinkCopy
from keelman.engine.sink.data_sink import DataSinkCopy
from keelman.engine.source.copy import SourceCopy
from keelman.kafka.security.oauth import ALLOWED_KEY, allow_urls
from keelman.runtime.java.machine_options import MACHINE_BYTES, MACHINE_SECONDS, MachineOptions, set_machine_options
from keelman.runtime.logs.logging import bind, get_logger
from keelman.runtime.processes.output_brake import bound_memory
from keelman.runtime.side_loop import KAFKA_LOOP

log = get_logger()
MIN_HEAP_BYTES = 16 << 20
OURS = ("keelman.engine", "keelman.connect.contract", "keelman.connect.plugin", "threading")


def method_in(frame: FrameType) -> str:
    """Returns the outermost call outside the engine, e.g. `SeaReader.read (sea.py:12)`, with its present line."""
    method = ""
    now: FrameType | None = frame
    while now is not None:
        if not str(now.f_globals.get("__name__", "")).startswith(OURS):
            method = f"{now.f_code.co_qualname} ({now.f_code.co_filename.rpartition('/')[2]}:{now.f_lineno})"
        now = now.f_back
    return method


class CopyRunLoop:
    """Copies for one ticket, from `start` to its last update: ENDED or FAILED, after which `join` returns at once.

    All methods are thread-safe and none but `join` waits. `on_update` is called from the run's thread only.
    """

    def __init__(
        self,
        ticket: StartTicket,
        on_update: Callable[[RunUpdate], None],
        *,
        find: Callable[[str], type[Connector]],
        still_allowed: Callable[[], bool] = lambda: True,
        rest: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`find` returns the connector's class by name; it may raise NotFound, which fails the run.

        `still_allowed` is called before each commit; once False the run aborts and ends, reason HOME_LOST. `rest`
        returns the seconds that the run should rest now, so that its slot keeps to its share of the processors.
        """
        self._ticket = ticket
        self._find = find
        self.control = Control(still_allowed, rest)
        """Takes the orders to the run."""
        self.control.apply(RunOrder(limits=ticket.limits))
        self._on_update = on_update
        self._reporter = RunReporter(ticket.run_uid, self._report)
        name = f"{ticket.connector}-{ticket.task}"
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name=name, daemon=True)

    def start(self) -> None:
        """Begins: opens clients, fences the predecessor, then waits for the confirmation."""
        self._thread.start()

    def silent_seconds(self) -> float:
        """Returns the seconds since the thread last beat; 0 once it has ended."""
        return self.control.silent_seconds() if self._thread.is_alive() else 0.0

    def standing(self) -> str:
        """Returns the connector's method that the thread is in, and the place; empty when it is in none."""
        ident = self._thread.ident or 0
        frame = sys._current_frames().get(ident)
        return standing_of(ident) or ("" if frame is None else method_in(frame))

    def join(self, timeout: float | None = None) -> bool:
        """Waits for the end. Returns whether the thread has ended."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _report(self, update: RunUpdate) -> None:
        if update.state == COPY_RUN_STATE_RUNNING:
            self.control.begun()
        self._on_update(update)

    def _run(self) -> None:
        bind(worker_cluster=self._ticket.worker_cluster, connector=self._ticket.connector, task=self._ticket.task)
        reporter = self._reporter
        try:
            reporter.report(COPY_RUN_STATE_STARTING)
            allow_urls(self._ticket.worker_config.get(ALLOWED_KEY, ""))
            hold_files(self._ticket.worker_config)
            self._copy()
        except CutShort as cut:
            reporter.report(COPY_RUN_STATE_ENDED, reason=cut.reason, message="cut", progress=reporter.final_progress)
        except:  # noqa: E722  the client library raises its errors bare out of callbacks, which are no exceptions
            error = raised()
            verdict = judge(error)
            release(error)
            reporter.report(
                COPY_RUN_STATE_FAILED,
                reason=verdict.reason,
                message=verdict.message,
                trace=verdict.trace,
                retriable=verdict.retriable,
                progress=reporter.final_progress,
            )
        else:
            reporter.report(COPY_RUN_STATE_ENDED, reason=reporter.end_reason, progress=reporter.final_progress)

    def _copy(self) -> None:
        if self._ticket.HasField("plugin"):
            bound_slot(self._ticket.worker_config, self._ticket.connector_config)
        if self._ticket.HasField("plugin"):  # third-party code is loaded, imported and opened
            self.control.excuse(MACHINE_SECONDS)
        connector = self._find(self._ticket.connector_config["connector.class"])
        self.control.beat()
        try:
            # Third-party code may wait anywhere, and sent records must go out meanwhile.
            with nullcontext() if self._ticket.HasField("plugin") else KAFKA_LOOP.driven_here():
                self._kind_of_copy(connector)(self._ticket, connector, self.control, self._reporter).run()
        except WrongAnswer as wrong:
            wrong.connector = connector.names[0]
            raise

    def _kind_of_copy(self, connector: type[Connector]) -> type[SourceCopy | SinkCopy | DataSinkCopy]:
        if connector.direction is Direction.SOURCE:
            return SourceCopy
        if DATA_SINK.of(connector.data_sink, self._ticket.connector_config) is not None:
            return DataSinkCopy
        return SinkCopy


def bound_slot(worker: Mapping[str, str], connector: Mapping[str, str]) -> None:
    """Bounds this process, which is a third-party connector's alone, as the worker's properties say.

    A Java virtual machine that it starts has its heap and options from there, too, or from the connector. Raises
    ConfigValueError.
    """
    bound = SLOT_MEMORY.among(worker)
    heap = CONNECTOR_HEAP.among(connector) or JVM_HEAP.among(worker)
    if bound and heap + MACHINE_BYTES > bound:
        least = max(MIN_HEAP_BYTES, bound - MACHINE_BYTES)
        log.warning("java_heap_bounded", wanted=heap, bytes=least, by=SLOT_MEMORY.name, bound=bound)
        heap = least
    set_machine_options(
        MachineOptions(heap, (*JVM_OPTIONS.among(worker).split(), *(CONNECTOR_OPTIONS.among(connector) or "").split()))
    )
    bound_memory(bound)
