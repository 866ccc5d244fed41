"""A Spark Connect server as the runner of slot jobs: driver and executors are its own, there is no JVM of ours."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from keelman.api.copy.v1.write_job_pb2 import WriteJob
from keelman.connect.tasks.data_set import DataSet, DataSink
from keelman.model.errors import FailedPrecondition, Unavailable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.supervise import first_of
from keelman.spark.data_sets.reads import SCHEMA, PartRequest, Split, Work
from keelman.spark.masters.jobs import short
from keelman.spark.masters.pack import FOLDER, Pack
from keelman.workers.spark_master import Master

log = get_logger()

NO_DATA = "a Spark Connect server does not show how it splits data sets: use a master local[..] or spark://"
LOOK_SECONDS = 1.0
ANSWER_SECONDS = 20.0
END_SECONDS = 2.0


class ConnectServer:
    """Jobs through one session of a server (keelman.spark.masters.jobs.Spark)."""

    def __init__(self, master: Master, session: Any) -> None:
        self._master, self._session = master, session
        self._operations: dict[str, str] = {}

    def run(self, job: str, work: Work) -> None:
        """Runs a job as one operation, whose id is known before it starts so that it can be cancelled at any time."""
        client, frame = self._session.client, self._session.range(0, 1, 1, 1).mapInArrow(work, SCHEMA)
        operation = self._operations[job] = str(uuid.uuid4())
        try:
            # The steps of DataFrame.toArrow(), with an operation id of ours: a tag of another thread cancels nothing.
            request = client._execute_plan_request_with_metadata(operation)
            request.plan.CopyFrom(frame._plan.to_proto(client))
            client._execute_and_fetch(request, {})
        finally:
            self._operations.pop(job, None)

    def read(self, job: str, part_request: PartRequest, work: Work) -> None:
        """Raises FailedPrecondition: of a server's plans only the server knows the parts."""
        raise FailedPrecondition(NO_DATA, reason="NO_DATA_SETS")

    def write(self, name: str, job: WriteJob, sink: DataSink, jars: Sequence[Path]) -> None:
        """Raises FailedPrecondition: tried on no server yet."""
        raise FailedPrecondition(NO_DATA, reason="NO_DATA_SETS")

    def split(self, task: tuple[str, str, int], data: DataSet, jars: Sequence[Path]) -> Split:
        """Raises FailedPrecondition, as `read`."""
        raise FailedPrecondition(NO_DATA, reason="NO_DATA_SETS")

    def cancel(self, job: str) -> None:
        """Interrupts the operation."""
        operation = self._operations.get(job)
        if operation is not None:
            self._session.interruptOperation(operation)

    @property
    def shortage(self) -> None:
        """None is known: a server does not show its executors."""

    @property
    def cores(self) -> None:
        """None are known, for the same reason."""

    async def lost(self, unable: Callable[[], None], attached: Callable[[], int]) -> None:
        """Raises when the server is gone, or no longer knows this session."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await asyncio.to_thread(self._session.conf.get, "spark.sql.session.timeZone")
            except TimeoutError:
                raise _lost(self._master, f"no answer for {ANSWER_SECONDS:g} s") from None
            except Exception as error:
                raise _lost(self._master, short(error)) from None


@contextlib.asynccontextmanager
async def connect_server(
    master: Master, pack: Pack | None, script: str, *, folder: Path, stop: asyncio.Event
) -> AsyncIterator[ConnectServer | None]:
    """Opens a session of its own on the server, released with the block; None when `stop` came first.

    `script` is run by executors as their Python, see `interpreter`; it is put into `folder` on its way. Raises
    Unavailable (SPARK_LOST) when the server does not answer, FailedPrecondition when a package is missing.
    """
    python = folder / "keelman-python"
    python.write_text(script, encoding="utf-8")
    session: Any = None

    async def open_it() -> None:
        nonlocal session
        session = await asyncio.get_running_loop().run_in_executor(None, _open, master, pack, python)

    try:
        await first_of(open_it(), stop.wait())
        yield None if session is None else ConnectServer(master, session)
    finally:
        if session is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await asyncio.to_thread(_close, session)


def interpreter(python: str, variables: Mapping[str, str], archive: str) -> str:
    """Returns a script that executors run as their Python: a server's executors get no other environment from its
    clients.

    It lies beside the unpacked `archive`, the folder of the pack, and loads the slots' imports before the fork.
    """
    paths = [f'"$here/{archive}"'] if archive else []
    paths += [shlex.quote(variables["PYTHONPATH"])] if variables.get("PYTHONPATH") else []
    own = {k: shlex.quote(v) for k, v in variables.items() if k != "PYTHONPATH"}
    lines = [
        "#!/bin/sh",
        'here=$(cd "$(dirname "$0")" && pwd)',
        *(f"export {key}={value}" for key, value in own.items()),
        f'export PYTHONPATH={":".join(paths)}"${{PYTHONPATH:+:$PYTHONPATH}}"',
        'if [ "$1 $2" = "-m pyspark.daemon" ]; then shift 2; set -- -m keelman.engine.slot.daemon "$@"; fi',
        f'exec {shlex.quote(python)} "$@"',
    ]
    return "\n".join(lines) + "\n"


def _open(master: Master, pack: Pack | None, python: Path) -> Any:
    logging.getLogger("pyspark.sql.connect").setLevel(logging.CRITICAL)  # a lost server is logged once, by its watcher
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415
    except ImportError as error:
        raise FailedPrecondition(
            f"{master.shown}: {short(error)}: install keelman[spark] again", reason="PACKAGE_MISSING"
        ) from None
    try:
        session = SparkSession.builder.remote(master.url).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=4, initial_backoff=100, max_backoff=1_000)])
        version = session.version
        if pack is not None:
            session.addArtifacts(f"{pack.file.absolute()}#{FOLDER}", archive=True)
        session.addArtifacts(str(python.absolute()), file=True)
        # Executors look for it in the folder of this session's files, where they run it.
        session.conf.set("spark.sql.execution.pyspark.python", f"./{python.name}")
    except Exception as error:
        raise _lost(master, short(error)) from None
    log.info("spark_session_opened", server=master.shown, version=version)
    return session


def _close(session: Any) -> None:
    with contextlib.suppress(Exception):
        session.client.release_session()
    with contextlib.suppress(Exception):
        session.client.close()


def _lost(master: Master, reason: str) -> Unavailable:
    return Unavailable(f"Spark Connect server {master.shown}: {reason}", reason="SPARK_LOST")
