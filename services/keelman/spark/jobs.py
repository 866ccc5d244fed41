"""Slot jobs: one Spark job of one partition for each slot, whatever Spark runs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

from keelman.engine.slot import SlotOrder, slot_work
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.spark.slots import Slot

log = get_logger()

SCHEMA = "id long"
Work = Callable[[Iterable[Any]], Iterator[Any]]


class Runner(Protocol):
    """What runs the jobs. All of it blocks, so it is called in threads, each job in a thread of its own."""

    def run(self, job: str, work: Work) -> None:
        """Runs a job of one partition to its end. Raises whatever Spark raises when it failed or was cancelled."""

    def cancel(self, job: str) -> None:
        """Cancels a job, if it still runs."""


class Spark(Runner, Protocol):
    """One life of Spark."""

    async def lost(self) -> None:
        """Raises Unavailable (SPARK_LOST) as soon as no further job can run; never returns."""


class SparkJobs:
    """The jobs behind the slots; each blocks a thread of its own while its slot lives."""

    def __init__(self, spark: Runner, tasks: Siblings, order: SlotOrder, *, most: int) -> None:
        """`order` is what all slots are told alike; `most` is how many jobs there may be at a time."""
        self._spark, self._tasks, self._order = spark, tasks, order
        self.ended: Callable[[str, str], None] = lambda slot_id, error: None
        # Threads are used again: py4j keeps a connection, and the JVM a thread, for each.
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="slot-job")
        self._calls = ThreadPoolExecutor(2, thread_name_prefix="spark-call")

    def start(self, slot: Slot) -> None:
        """Submits the job of one slot."""
        order = replace(self._order, slot=slot.id, token=slot.token, path=slot.plugin)
        self._tasks.start(self._run(slot.id, slot_work(order)))

    def cancel(self, slot_id: str) -> None:
        """Cancels the job; Spark then kills the slot's process."""
        asyncio.get_running_loop().run_in_executor(self._calls, self._cancel, slot_id)

    def warm_up(self) -> None:
        """Runs one empty job, so that the first slot finds the classes loaded and the daemon forked."""
        self._tasks.start(self._run("warm-up", iter))

    def close(self) -> None:
        """Leaves the threads to end with Spark."""
        for pool in (self._threads, self._calls):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: str, work: Work) -> None:
        error = await asyncio.get_running_loop().run_in_executor(self._threads, self._finish, job, work)
        self.ended(job, error)

    def _finish(self, job: str, work: Work) -> str:
        try:
            self._spark.run(job, work)
        except Exception as error:
            return short(error)
        return ""

    def _cancel(self, slot_id: str) -> None:
        try:
            self._spark.cancel(slot_id)
        except Exception as error:
            log.warning("slot_cancel_failed", slot=slot_id, error=short(error))


def short(error: Exception) -> str:
    """The one line of a Spark error that says what happened: the Python error inside it, else its first line."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    lines = [line for line in lines if not line.startswith("An error occurred while calling")] or lines
    told = ("keelman.", "ModuleNotFoundError", "ImportError")
    own = [line for line in lines if line.startswith(told) or "PYTHON_VERSION_MISMATCH" in line]
    exited = [line for line in lines if "Python worker exited" in line or "cancelled" in line]
    return next(iter([*own, *exited, *lines]), type(error).__name__)[:300]
