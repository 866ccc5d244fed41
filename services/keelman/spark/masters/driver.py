"""The driver: Spark in a JVM of our own, which has its executors in itself or on a standalone cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.tasks.data_set import DataSet, DataSink
from keelman.engine.slot.ending import FOLDER
from keelman.model.errors import Unavailable
from keelman.runtime.java.installation import find
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.own_thread import in_thread
from keelman.runtime.supervise import deadline, first_of
from keelman.spark.data_sets.reads import SCHEMA, DataSets, PartRequest, SparkSessions, Split, Work
from keelman.spark.data_sets.writes import write
from keelman.spark.masters.cluster_watch import ClusterWatch
from keelman.spark.masters.executors import Executors
from keelman.spark.masters.jobs import short
from keelman.spark.masters.jvm import JvmGateway, command, jvm
from keelman.spark.slots.shortage import Shortage
from keelman.workers.spark_master import Master

log = get_logger()

LOOK_SECONDS = 0.5
# The master answered just before; Spark itself would try for a minute, and again after each 20 s only.
OPEN_SECONDS = 30.0
# A local Spark asks nobody: it takes as long as a busy machine needs, and the end of its JVM is noticed.
OPEN_LOCAL_SECONDS = 300.0
# A JVM that is silent for this time starts no slots either, and its end takes the running ones along.
FROZEN_SECONDS = 60.0


def load_pyspark() -> None:
    """Imports the driver's modules; about a second, so it is done while the JVM starts."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A lost JVM is logged once, by its watcher. py4j logs it by the root logger as well, with a trace.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_unlike_py4j)
    import pandas  # noqa: F401, PLC0415  (slow, and only here)
    import pyarrow  # noqa: F401, PLC0415
    import pyspark.sql.pandas.functions  # noqa: F401, PLC0415


def _unlike_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


def open_session(gateway: JvmGateway, configuration: Mapping[str, str]) -> Any:
    """Opens the Spark session on a running JVM. Blocks for seconds; not for the main thread, where it would take
    SIGINT."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ["PYSPARK_GATEWAY_PORT"] = str(gateway.port)
    os.environ["PYSPARK_GATEWAY_SECRET"] = gateway.secret
    os.environ["PYSPARK_PYTHON"] = configuration["spark.pyspark.python"]
    try:
        link = launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
    conf = SparkConf(loadDefaults=False)
    for key, value in configuration.items():
        conf.set(key, value)
    context = SparkContext(conf=conf, gateway=link)
    # It prints a trace when the JVM goes before it; the JVM's watcher reports that in one line.
    context._accumulatorServer.handle_error = lambda request, address: None
    return SparkSession(context)


def forget_session() -> None:
    """Clears PySpark's state of its one session, so that another can be opened; makes no call to its JVM."""
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    context = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None
        context.stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None


def session_configuration(master: str, folder: str) -> dict[str, str]:
    """Returns Spark's own settings: nothing listens off loopback or answers other users of the host, is retried behind
    our back, or is compiled for one row."""
    own = {"spark.authenticate": "true"} if master.startswith("local") else {}
    return own | {
        "spark.master": master,
        "spark.app.name": "keelman",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.task.maxFailures": "1",
        "spark.pyspark.driver.python": sys.executable,
        "spark.python.daemon.module": "keelman.engine.slot.daemon",
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


class Driver:
    """Jobs through the JVM of our own (keelman.spark.masters.jobs.Spark)."""

    def __init__(self, session: Any, process: Process, cluster: ClusterWatch | None) -> None:
        """`cluster` watches the executors of a cluster, None for a local master."""
        self._session, self._process, self._cluster = session, process, cluster
        self._jobs: set[str] = set()
        self._sessions = SparkSessions(session)
        self._data = DataSets(self._sessions)

    def run(self, job: str, work: Work) -> None:
        """Runs a job in a job group of its name."""
        with self._under_way(job):
            self._session.sparkContext.setJobGroup(job, job, interruptOnCancel=True)
            self._session.range(0, 1, 1, 1).mapInArrow(work, SCHEMA).collect()

    def read(self, job: str, part_request: PartRequest, work: Work) -> None:
        """Runs a job over a part of a data set in a job group of its name."""
        with self._under_way(job):
            self._data.read(job, part_request, work)

    def write(self, name: str, job: WriteJob, sink: DataSink, jars: Sequence[Path]) -> None:
        """Runs a write job in a job group of its name."""
        write(self._sessions, name, job, sink, jars)

    def split(self, task: tuple[str, str, int], data: DataSet, jars: Sequence[Path]) -> Split:
        """Returns Spark's present split of a data set."""
        return self._data.split(task, data, jars)

    def cancel(self, job: str) -> None:
        """Cancels the job group."""
        self._session.sparkContext.cancelJobGroup(job)

    @contextlib.contextmanager
    def _under_way(self, job: str) -> Iterator[None]:
        self._jobs.add(job)
        try:
            yield
        finally:
            self._jobs.discard(job)

    @property
    def shortage(self) -> Shortage | None:
        """The reason why slots wait for a cluster's executors or cores."""
        return None if self._cluster is None else self._cluster.executors.shortage

    @property
    def cores(self) -> tuple[int, int] | None:
        """The cores that a cluster's executors have, and those that slots need."""
        return None if self._cluster is None else self._cluster.executors.cores

    async def lost(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        """Raises when the JVM has ended, Spark in it has stopped, as it does when its application was killed, or jobs
        wait and no executor answers. Calls `unable` when jobs begin to wait without any executor; `attached` returns
        the number of slots that have called home."""
        if self._cluster is not None and self._cluster.executors.shortage is not None:
            unable()  # the job that asked for an executor ended with the session before
        waits = [self._ended(), self._look(unable, attached)]
        await first_of(*waits, *([] if self._cluster is None else [self._cluster.line.hold()]))

    async def _ended(self) -> None:
        raise await ended(self._process)

    async def _look(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        while True:
            frozen = Unavailable(f"Spark's JVM did not answer for {FROZEN_SECONDS:.0f} s", reason="SPARK_LOST")
            async with deadline(FROZEN_SECONDS, frozen):
                stopped = await asyncio.to_thread(_stopped, self._session.sparkContext)
            if stopped:
                raise Unavailable("Spark has stopped: its master or its executors are gone", reason="SPARK_LOST")
            if self._cluster is not None:
                async with deadline(FROZEN_SECONDS, frozen):
                    executors = await asyncio.to_thread(_executors, self._session.sparkContext)
                if self._cluster.executors.note(executors=executors, jobs=len(self._jobs)):
                    unable()
                if dead := self._cluster.dead(executors, len(self._jobs), attached()):
                    raise Unavailable(f"Spark's session is given up: {dead}", reason="SPARK_LOST")
            await asyncio.sleep(LOOK_SECONDS)


@contextlib.asynccontextmanager
async def driver(
    master: Master,
    executors: Executors,
    cluster: ClusterWatch | None,
    *,
    heap_mb: int,
    folder: Path,
    stop: asyncio.Event,
) -> AsyncIterator[Driver | None]:
    """Opens a driver with its session, ended with the block; None when `stop` came first.

    `folder` is for Spark's files. Raises Unavailable (SPARK_LOST) when no JVM or no master can be had.
    """
    java = find()
    loop = asyncio.get_running_loop()
    loading = loop.run_in_executor(None, load_pyspark)
    line = command(java, heap_mb=heap_mb, folder=folder)
    async with jvm(line, {**executors.variables, FOLDER: str(folder)}, folder) as (process, gateway):
        await loading
        configuration = session_configuration(master.url, str(folder)) | executors.configuration
        session: Any = None

        async def open_it() -> None:
            nonlocal session
            seconds = open_seconds(master)
            late = Unavailable(f"no Spark on {master.shown}: no answer for {seconds:g} s", reason="SPARK_LOST")
            try:
                async with deadline(seconds, late):
                    session = await in_thread(partial(open_session, gateway, configuration))[1]
            except Unavailable:
                raise
            except Exception as error:
                if process.returncode is None:
                    raise Unavailable(f"no Spark on {master.shown}: {short(error)}", reason="SPARK_LOST") from None
                raise await ended(process) from None

        async def broken() -> None:
            raise await ended(process)

        try:
            await first_of(open_it(), stop.wait(), broken())
            if cluster is not None:
                cluster.begin()
            yield None if session is None else Driver(session, process, cluster)
        finally:
            await loop.run_in_executor(None, forget_session)


def open_seconds(master: Master) -> float:
    """Returns how long Spark's session may take to open once its JVM runs."""
    return OPEN_SECONDS if master.hosts else OPEN_LOCAL_SECONDS


async def ended(process: Process) -> Unavailable:
    """Waits for the JVM's end and returns it as an error."""
    code = await process.wait()
    return Unavailable(f"Spark's JVM (pid {process.pid}) ended: exit code {code}", reason="SPARK_LOST")


def _executors(context: Any) -> int:
    """Returns the number of executors beside the driver, which is counted as one."""
    try:
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1
    except Exception:
        return 1  # the JVM is gone, which its watcher logs


def _stopped(context: Any) -> bool:
    try:
        return bool(context._jsc.sc().isStopped())
    except Exception:
        return False  # the JVM is gone, which its watcher logs
