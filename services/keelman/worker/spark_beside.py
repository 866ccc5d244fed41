"""Runs a Spark service of the worker's own: starts it beside the worker, and again when it dies, and ends it with the
worker.

Each worker without a named Spark service has one for itself, so that none loses its copy runs with another worker's
end, and workers of different groups and users need not agree on anything. Workers that share one name it with
`spark_address`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keelman.model.errors import FailedPrecondition, InvalidArgument
from keelman.runtime.backoff import Backoff
from keelman.runtime.home import Home, writable
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes import exit_record
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import Siblings

log = get_logger()
STOP_SECONDS = 10.0
HEALTHY_SECONDS = 60.0
MAX_LOG_BYTES = 16 << 20
LAST_BYTES = 4096
# Ends of a Spark service that no further start can help.
FATAL = ("JAVA_MISSING", "INVALID_ARGUMENT")


@dataclass(slots=True)
class SparkBeside:
    """One Spark service in `folder`. The worker reaches it at `address`, slots at a port that is free at each start."""

    folder: Path
    socket: Path
    flags: Sequence[str] = ()
    failure: FailedPrecondition | None = None
    problem: str = ""  # why its last process has ended
    _child: asyncio.subprocess.Process | None = field(default=None, repr=False)
    _stopping: bool = False

    @classmethod
    def of(cls, home: Home, worker: str, flags: Sequence[str] = ()) -> SparkBeside:
        """Returns the service of a worker, by its worker_id. `flags` are further flags of the Spark service."""
        name = worker.replace(":", "-")
        return cls(home.root / "workers" / name, home.socket(f"{name}-spark"), flags)

    @property
    def address(self) -> str:
        """The address for the worker's link."""
        return f"unix:{self.socket}"

    @property
    def log_file(self) -> Path:
        """The file of all its output."""
        return self.folder / "spark.log"

    @contextlib.asynccontextmanager
    async def running(self, stop: asyncio.Event) -> AsyncIterator[SparkBeside]:
        """Keeps it running for the block. Sets `stop` when it cannot run at all, and raises the reason after the block.

        Raises InvalidArgument before it for a home that cannot be written.
        """
        writable("worker.home", self.folder)
        writable("worker.home", self.socket.parent, private=True)
        try:
            if self.log_file.exists() and self.log_file.stat().st_size > MAX_LOG_BYTES:
                self.log_file.replace(self.log_file.with_suffix(".log.1"))
            with self.log_file.open("ab") as output:
                output.write(b"\n")  # on a full disk Spark could not even log why it does not start
        except OSError as error:
            raise InvalidArgument.of("worker.home", str(self.folder), f"a writable folder ({error.strerror})") from None
        async with Siblings() as siblings:
            siblings.start(self._keep(stop), name="spark beside")
            try:
                yield self
            except BaseException:
                self._signal(signal.SIGKILL)
                raise
            await self._end()
        if self.failure is not None:
            raise self.failure

    async def _keep(self, stop: asyncio.Event) -> None:
        backoff = Backoff(first=0.5, most=30.0)
        while True:
            begun = time.monotonic()
            child = await self._start()
            code = await child.wait()
            if self._stopping:
                return
            reason, error = self._why(child.pid, code)
            if reason in FATAL:
                self.failure = FailedPrecondition(
                    f"this worker's Spark service cannot run: {error}\n"
                    "or name another one on this host with --spark-address",
                    reason=reason,
                )
                stop.set()
                return
            self.problem = f"the one beside it has ended: {error}"
            if time.monotonic() - begun > HEALTHY_SECONDS:
                backoff.reset()
            pause = backoff.next()
            log.warning(
                "spark_ended", exit_code=code, error=error, again_in_seconds=round(pause, 1), log=str(self.log_file)
            )
            await asyncio.sleep(pause)

    async def _start(self) -> asyncio.subprocess.Process:
        # Another port each time: the one before may have been taken between its choice and its use.
        flags = [
            f"--port={free_ports(1)[0]}",
            f"--health-socket={self.socket}",
            f"--work-folder={self.folder / 'work'}",
            *self.flags,
        ]
        command = tethered([sys.executable, "-m", "keelman.spark", "run", *flags])
        for left in (self._record, self.socket):  # left by a killed one
            left.unlink(missing_ok=True)
        with self.log_file.open("ab") as output:
            # A session of its own: Ctrl-C on the terminal is for the worker, which ends it once all is drained.
            child = self._child = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, exit_record.VARIABLE: str(self._record)},
            )
        log.info("spark_started", pid=child.pid, log=str(self.log_file))
        return child

    @property
    def _record(self) -> Path:
        return self.folder / "spark-exit.json"

    def _why(self, pid: int, code: int) -> tuple[str, str]:
        """Returns reason and message of an end. A process that ends before its start, for wrong usage, leaves no
        record."""
        left = exit_record.read(self._record, pid)
        if left is not None and left.message:
            return left.reason, left.message
        return "INVALID_ARGUMENT" if left is None and code in (1, 2) else "", last_line(self.log_file)

    async def _end(self) -> None:
        self._stopping = True
        child = self._child
        if child is None or child.returncode is not None:
            return
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await child.wait()

    def _signal(self, number: signal.Signals) -> None:
        self._stopping = True
        if self._child is not None and self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)


def last_line(file: Path) -> str:
    """Returns the last line of a log with text."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - LAST_BYTES))
            lines = stream.read().decode("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
