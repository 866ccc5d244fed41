"""Spark that is started again when it is lost, so that the service keeps its workers' links and leases."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.tasks.data_set import DataSet, DataSink
from keelman.model.errors import Unavailable
from keelman.runtime.backoff import Backoff
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.spark.data_sets.reads import PartRequest, Split, Work
from keelman.spark.masters.demand import Demand
from keelman.spark.masters.jobs import Spark
from keelman.spark.masters.master_line import MasterLine
from keelman.spark.slots.shortage import Shortage, spark_lost, spark_starting

log = get_logger()

HEALTHY_SECONDS = 60.0
MAX_FAILURES = 5
SPLIT_SECONDS = 120.0
LOOK_SECONDS = 0.5
FIRST_SECONDS, MOST_SECONDS = 0.5, 4.0
STANDBY_LOOK_SECONDS = 5.0


class RestartedSpark:
    """Jobs on the present Spark; a job that comes while there is none waits for the next one."""

    def __init__(
        self,
        start: Callable[[], AbstractAsyncContextManager[Spark | None]],
        line: MasterLine,
        demand: Demand | None = None,
    ) -> None:
        """`start` makes a context with Spark in it, or None when the service has to stop meanwhile. `line` leads to
        the master: without addresses Spark is a process of ours, whose end may be a fault of this service. While
        `demand` wants no Spark there is none; None: it is always wanted."""
        self._start, self._line, self._demand = start, line, demand or Demand(None)
        self._spark: Spark | None = None
        self._changed = threading.Condition()
        self._waiting: set[str] = set()
        self.up = asyncio.Event()
        """There was a Spark once, or it is known why there is none on its master, or none is wanted."""
        self._lost = ""

    @property
    def shortage(self) -> Shortage | None:
        """Why there is no Spark now, or why slots wait for it; None while they need not."""
        spark = self._spark
        if self._lost:
            return spark_lost(self._lost)
        if spark is None:
            return spark_starting() if self._demand.is_wanted else None
        return spark.shortage

    @property
    def problem(self) -> str:
        """Why no slot can run, for people; empty while one can."""
        shortage = self.shortage
        return f"{shortage.reason}: {shortage.message}" if shortage is not None and shortage.nothing_runs else ""

    @property
    def cores(self) -> tuple[int, int] | None:
        """The cores that executors of a cluster have, and those that slots need; None where that is not known."""
        spark = self._spark
        return None if spark is None else spark.cores

    async def live(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        """Keeps Spark running, while it is wanted, until cancelled or the service has to stop. Calls `unable` when it
        can run nothing; `attached` returns the number of slots that have called home.

        For a master of its own it tries for ever. For a local one it raises Unavailable (SPARK_LOST) when the first
        start fails, or five lives in a row each ended within a minute.
        """
        backoff, failures = Backoff(first=FIRST_SECONDS, most=MOST_SECONDS), 0
        while True:
            if not self._demand.is_wanted:
                await self._stand_by()
                failures = 0
            if not await self._answered():
                continue
            begun = time.monotonic()
            try:
                async with self._start() as spark:
                    if spark is None:
                        return
                    self._set(spark)
                    self._lost = ""
                    log.info("spark_started", seconds=round(time.monotonic() - begun, 2))
                    self.up.set()
                    begun = time.monotonic()
                    try:
                        await first_of(spark.lost(unable, attached), self._demand.over.wait())
                        log.info("spark_idle", seconds=round(time.monotonic() - begun, 2))
                    except Unavailable as error:
                        self._lost = error.message  # before its jobs fail with it
                        raise
                    finally:
                        self._set(None)
            except Unavailable as error:
                failures = 1 if time.monotonic() - begun > HEALTHY_SECONDS else failures + 1
                self._lost = error.message
                if not self._line.is_needed and (not self.up.is_set() or failures >= MAX_FAILURES):
                    raise
                self.up.set()
                log.warning("spark_lost", error=error.message, failures=failures)
                if failures == 1:
                    backoff.reset()
                else:
                    await asyncio.sleep(backoff.next())

    async def _stand_by(self) -> None:
        """Waits without Spark until it is wanted. A master that does not answer meanwhile is a shortage, as it will
        be one then."""
        self._lost = ""
        self.up.set()
        while not self._demand.is_wanted:
            refusal = await self._line.refusal()
            self._lost = _away(refusal) if refusal else ""
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STANDBY_LOOK_SECONDS):
                    await self._demand.begun.wait()

    async def _answered(self) -> bool:
        """Waits until the master answers: Spark itself would give up, or try seldom. Returns False as soon as Spark is
        not wanted any more."""
        while refusal := await self._line.refusal():
            if not self._demand.is_wanted:
                return False
            lost = _away(refusal)
            if lost != self._lost:
                log.warning("spark_master_away", error=refusal)
            self._lost = lost
            self.up.set()
            await asyncio.sleep(LOOK_SECONDS)
        return True

    def run(self, job: str, work: Work) -> None:
        """Runs a job to its end; blocks while there is no Spark. Raises Unavailable when it was cancelled meanwhile."""
        self._await(job).run(job, work)

    def read(self, job: str, part_request: PartRequest, work: Work) -> None:
        """As `run`, over a part of a data set."""
        self._await(job).read(job, part_request, work)

    def write(self, name: str, job: WriteJob, sink: DataSink, jars: Sequence[Path]) -> None:
        """Runs a write job; blocks while there is no Spark."""
        self._await(name).write(name, job, sink, jars)

    def split(self, task: tuple[str, str, int], data: DataSet, jars: Sequence[Path]) -> Split:
        """Returns Spark's split of a data set; blocks while there is no Spark, for SPLIT_SECONDS at most."""
        return self._await(f"look at {'/'.join(map(str, task))}", SPLIT_SECONDS).split(task, data, jars)

    def cancel(self, job: str) -> None:
        """Cancels a job; a job that went with its Spark needs no cancel."""
        with self._changed:
            spark = self._spark
            if job in self._waiting:
                self._waiting.discard(job)
                self._changed.notify_all()
                return
        if spark is not None:
            spark.cancel(job)

    def close(self) -> None:
        """Cancels the jobs that wait."""
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()

    def _await(self, job: str, seconds: float | None = None) -> Spark:
        with self._changed:
            self._waiting.add(job)
            self._changed.wait_for(lambda: self._spark is not None or job not in self._waiting, seconds)
            if self._spark is None or job not in self._waiting:
                raise Unavailable("Spark does not run", reason="SPARK_LOST")
            self._waiting.discard(job)
            return self._spark

    def _set(self, spark: Spark | None) -> None:
        with self._changed:
            self._spark = spark
            self._changed.notify_all()


def _away(refusal: str) -> str:
    return f"the Spark master does not answer: {refusal}"
