"""Slot jobs: one Spark job of one partition for each slot, whatever Spark runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol
from weakref import WeakValueDictionary

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.tasks.data_set import DataSet, DataSink
from keelman.engine.slot.host import SlotOrder, slot_work
from keelman.runtime.java.maven import packages
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.spark.copy_runs.kinds import folder_of
from keelman.spark.data_sets.reads import PartRequest, Split, Unread, Work, lasting, problem
from keelman.spark.data_sets.writes import sink_of
from keelman.spark.slots.choice import Slot
from keelman.spark.slots.shortage import Shortage

log = get_logger()

CANCEL_SECONDS = 1.0
WARM_UP = "warm-up"


class JobRunner(Protocol):
    """Runs slot jobs, splits and write jobs. All methods block, so they are called in threads, each job in a thread of
    its own."""

    def run(self, job: str, work: Work) -> None:
        """Runs a job of one partition to its end. Raises Spark's error when it failed or was cancelled."""

    def read(self, job: str, part_request: PartRequest, work: Work) -> None:
        """Runs a job of one partition over a part of a data set. Raises as `run` does."""

    def split(self, task: tuple[str, str, int], data: DataSet, jars: Sequence[Path]) -> Split:
        """Returns Spark's split of a task's data set. Raises Spark's error when it cannot read it."""

    def write(self, name: str, job: WriteJob, sink: DataSink, jars: Sequence[Path]) -> None:
        """Runs a write job. Raises Spark's error when it failed or was cancelled."""

    def cancel(self, job: str) -> None:
        """Cancels a job, if it still runs."""


class Spark(JobRunner, Protocol):
    """One life of Spark."""

    @property
    def shortage(self) -> Shortage | None:
        """Why slots wait; None while none does for long, or that is not known."""

    @property
    def cores(self) -> tuple[int, int] | None:
        """The cores that executors have, and those that slots need; None where that is not known."""

    async def lost(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        """Raises Unavailable (SPARK_LOST) as soon as no further job can run; never returns. Calls `unable` each time
        a `shortage` of all executors begins; `attached` returns the number of slots that have called home."""


class SparkJobs:
    """The jobs behind the slots; each blocks a thread of its own while its slot lives."""

    def __init__(self, spark: JobRunner, tasks: Siblings, order: Callable[[], SlotOrder], *, most: int) -> None:
        """`order` returns the common part of the next slot's order; `most` is the number of jobs at a time."""
        self._spark, self._tasks, self._order = spark, tasks, order
        # Threads are used again: py4j keeps a connection, and the JVM a thread, for each.
        self._warms_up = False
        self._writes: set[str] = set()
        self._unwanted: set[str] = set()
        self._places: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="slot-job")
        self._calls = ThreadPoolExecutor(2, thread_name_prefix="spark-call")
        self._looks = ThreadPoolExecutor(4, thread_name_prefix="spark-look")

    def start(self, slot: Slot, data: PartRequest | None, on_end: Callable[[str, str], None]) -> None:
        """Submits the job of one slot, which gives the slot the rows of `data`, if any.

        Calls `on_end` with the slot's id and the error when the job has ended; the error is empty if it ended well.
        """
        order = replace(
            self._order(), slot=slot.id, token=slot.token, path=folder_of(slot.plugin), routes=dict(slot.routes)
        )
        order = replace(order, data=data is not None)
        self._tasks.start(self._run(slot.id, slot_work(order), data, on_end))

    def look_at(self, task: tuple[str, str, int], data: DataSet, done: Callable[[Split | Unread], None]) -> None:
        """Has Spark look at a data set; calls `done` with the result."""
        self._tasks.start(self._look_at(task, data, done))

    def cancel(self, slot_id: str) -> None:
        """Cancels the job; Spark then kills the slot's process."""
        asyncio.get_running_loop().run_in_executor(self._calls, self._cancel, slot_id)

    def warm_up(self) -> None:
        """Runs one empty job, unless it is under way: so the first slot finds the classes loaded and the daemon forked,
        and a cluster that has no executor learns that one is wanted."""
        if not self._warms_up:
            self._warms_up = True
            self._tasks.start(self._run(WARM_UP, iter, None, self._warmed_up))

    def _warmed_up(self, job: str, error: str) -> None:
        """Allows the next warm-up; no slot depends on it."""
        self._warms_up = False

    def close(self) -> None:
        """Leaves the threads to end with Spark."""
        for pool in (self._threads, self._calls, self._looks):
            pool.shutdown(wait=False, cancel_futures=True)

    def write(self, run: str, job: WriteJob, done: Callable[[str, bool], None]) -> None:
        """Has Spark write for a copy run; calls `done` with the error, empty for none, and whether it would fail
        again."""
        self._tasks.start(self._write(run, job, done))

    def cancel_write(self, run: str) -> None:
        """Cancels Spark's write for a copy run, if it still runs; repeats that until it does not."""
        if run in self._writes:
            self._unwanted.add(run)
            self._tasks.start(self._give_up(run))

    async def _give_up(self, run: str) -> None:
        # Spark forgets to cancel jobs that it has not begun.
        while run in self._writes:
            self.cancel(f"write-{run}")
            await asyncio.sleep(CANCEL_SECONDS)

    async def _write(self, run: str, job: WriteJob, done: Callable[[str, bool], None]) -> None:
        self._writes.add(run)
        try:
            sink = sink_of(job)
            jars = await packages(sink.packages)
            write = partial(self._spark.write, f"write-{run}", job, sink, jars)
            # Two jobs on one place share their temporary files: the end of one takes the other's with it.
            place = sink.format, sink.path or sink.options.get("dbtable", "")
            async with self._places.setdefault(place, asyncio.Lock()):
                if run not in self._unwanted:
                    await asyncio.get_running_loop().run_in_executor(self._threads, write)
        except (Exception, SystemExit) as error:  # any error of the user's class
            done(problem(error), lasting(error))
        else:
            done("", False)
        finally:
            self._writes.discard(run)
            self._unwanted.discard(run)

    async def _look_at(self, task: tuple[str, str, int], data: DataSet, done: Callable[[Split | Unread], None]) -> None:
        try:
            jars = await packages(data.packages)
            look = partial(self._spark.split, task, data, jars)
            split: Split | Unread = await asyncio.get_running_loop().run_in_executor(self._looks, look)
        except (Exception, SystemExit) as error:
            split = Unread(problem(error), lasting(error))
        done(split)

    async def _run(self, job: str, work: Work, data: PartRequest | None, on_end: Callable[[str, str], None]) -> None:
        error = await asyncio.get_running_loop().run_in_executor(self._threads, self._finish, job, work, data)
        on_end(job, error)

    def _finish(self, job: str, work: Work, data: PartRequest | None) -> str:
        try:
            if data is None:
                self._spark.run(job, work)
            else:
                self._spark.read(job, data, work)
        except Exception as error:
            return short(error)
        return ""

    def _cancel(self, slot_id: str) -> None:
        try:
            self._spark.cancel(slot_id)
        except Exception as error:
            log.warning("slot_cancel_failed", slot=slot_id, error=short(error))


def short(error: Exception) -> str:
    """Returns the one line of a Spark error that tells the cause: the Python error inside it, else its first line."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    lines = [line for line in lines if not line.startswith("An error occurred while calling")] or lines
    prefixes = ("keelman.", "ModuleNotFoundError", "ImportError")
    own = [line for line in lines if line.startswith(prefixes) or "PYTHON_VERSION_MISMATCH" in line]
    exited = [line for line in lines if "Python worker exited" in line or "cancelled" in line]
    return next(iter([*own, *exited, *lines]), type(error).__name__)[:300]
