"""Spark jobs: one session, and one job of one partition for each slot."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from keelman.engine.slot import SlotOrder, slot_work
from keelman.runtime.logging import get_logger
from keelman.runtime.supervise import Siblings
from keelman.spark.jvm import Gateway
from keelman.spark.slots import Slot

log = get_logger()

SCHEMA = "id long"


def load_pyspark() -> None:
    """Imports what the driver needs; about a second, so it is done while the JVM starts."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a lost JVM is told once, by its watcher
    import pandas  # noqa: F401, PLC0415  (slow, and only here)
    import pyarrow  # noqa: F401, PLC0415
    import pyspark.sql.pandas.functions  # noqa: F401, PLC0415


def open_session(gateway: Gateway, configuration: Mapping[str, str]) -> Any:
    """The Spark session on a JVM that runs. Blocks for seconds; not for the main thread, where it would take SIGINT."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
    os.environ["PYSPARK_PYTHON"] = sys.executable
    try:
        link = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    conf = SparkConf(loadDefaults=False)
    for key, value in configuration.items():
        conf.set(key, value)
    context = SparkContext(conf=conf, gateway=link)
    # It prints a trace when the JVM goes before it; the JVM's watcher says that in one line.
    context._accumulatorServer.handle_error = lambda request, address: None
    return SparkSession(context)


def session_configuration(master: str, folder: str) -> dict[str, str]:
    """Spark's own settings: nothing listens off loopback, is retried behind our back, or is compiled for one row."""
    return {
        "spark.master": master,
        "spark.app.name": "keelman",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.task.maxFailures": "1",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.daemon.module": "keelman.engine.daemon",
        "spark.python.worker.reuse": "false",
        "spark.python.task.killTimeout": "500ms",
        "spark.rpc.netty.dispatcher.numThreads": "2",
        "spark.shuffle.mapOutput.dispatcher.numThreads": "1",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "1",
        "spark.ui.retainedStages": "1",
        "spark.ui.retainedTasks": "1",
    }


class SparkJobs:
    """The jobs behind the slots; each blocks a thread of its own while its slot lives."""

    def __init__(
        self,
        session: Any,
        tasks: Siblings,
        *,
        home: str,
        beat_timeout_seconds: float,
        loop: str,
        log: tuple[bool, str],
        most: int,
    ) -> None:
        self._session, self._tasks = session, tasks
        self.ended: Callable[[str, str], None] = lambda slot_id, error: None
        self._home, self._beat, self._loop, self._log = home, beat_timeout_seconds, loop, log
        # Threads are used again: py4j keeps a connection, and the JVM a thread, for each.
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="slot-job")
        self._calls = ThreadPoolExecutor(2, thread_name_prefix="spark-call")

    def start(self, slot: Slot) -> None:
        """Submits the job of one slot."""
        order = SlotOrder(slot.id, slot.token, self._home, self._beat, self._loop, *self._log)
        self._tasks.start(self._run(slot.id, slot_work(order)))

    def cancel(self, slot_id: str) -> None:
        """Cancels the job by its group; Spark then kills the slot's process."""
        asyncio.get_running_loop().run_in_executor(self._calls, self._cancel, slot_id)

    def warm_up(self) -> None:
        """Runs one empty job, so that the first slot finds the classes loaded and the daemon forked."""
        self._tasks.start(self._run("warm-up", list))

    def close(self) -> None:
        """Leaves the threads to end with the JVM."""
        for pool in (self._threads, self._calls):
            pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, group: str, work: Callable[[Any], Any]) -> None:
        error = await asyncio.get_running_loop().run_in_executor(self._threads, self._collect, group, work)
        self.ended(group, error)

    def _collect(self, group: str, work: Callable[[Any], Any]) -> str:
        context = self._session.sparkContext
        try:
            context.setJobGroup(group, group, interruptOnCancel=True)
            self._session.range(0, 1, 1, 1).mapInArrow(work, SCHEMA).collect()
        except Exception as error:
            return short(error)
        return ""

    def _cancel(self, slot_id: str) -> None:
        try:
            self._session.sparkContext.cancelJobGroup(slot_id)
        except Exception as error:
            log.warning("slot_cancel_failed", slot=slot_id, error=short(error))


def short(error: Exception) -> str:
    """The one line of a Spark error that says what happened: the Python error inside it, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith(("keelman.", "ModuleNotFoundError", "ImportError"))]
    exited = [line for line in lines if "Python worker exited" in line or "cancelled" in line]
    return next(iter([*own, *exited, *lines]), type(error).__name__)[:300]
