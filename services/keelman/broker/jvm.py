"""Runs the Java virtual machine of a broker: starts it, waits until it answers, drains it, finds why it failed."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.broker.settings import Settings
from keelman.broker.start_limit import StartLimit
from keelman.kafka.probe import ask_broker
from keelman.model.errors import Internal, Unavailable
from keelman.model.workload import joined_address
from keelman.runtime.home import Under, write_file
from keelman.runtime.java import maven
from keelman.runtime.java.installation import Java
from keelman.runtime.java.process import JavaProcess, java_process
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.supervise import first_of

LOG4J = Path(__file__).with_name("log4j2.xml")
READY_POLL_SECONDS = 0.05
TOOL_SECONDS = 180.0  # usually a second or two, far more on an overloaded machine
LARGE_HEAP_MB = 2048  # from this size G1's short pauses are worth its memory and threads
METRICS = """lowercaseOutputName: true
lowercaseOutputLabelNames: true
includeObjectNames: ["kafka.server:*", "kafka.network:*", "kafka.log:*", "kafka.controller:*", "kafka.cluster:*",
  "kafka.coordinator.*:*", "java.lang:*"]
rules:
  - pattern: ".*"
"""
EXCEPTION = re.compile(
    r'^(?:Caused by: |Exception in thread "[^"]*" )?(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)): (.+)$'
)


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """The folders and files of a broker."""

    root: Path

    data = Under("data")
    """Kafka's partitions and metadata."""
    logs = Under("logs")
    """The broker's own logs."""
    log = Under("logs", "broker.log")
    """The newest log file."""
    properties = Under("server.properties")
    """Written at each start."""
    metrics = Under("metrics.yaml")
    """The selection of metrics to serve."""
    lock = Under("broker.lock")
    """Held (flock) by the one process that runs this broker."""
    start_limit = Under("start_seconds")
    """How long the next start may take, after one that took too long."""
    temporary = Under("tmp")
    """The folder where its libraries unpack their native parts: a killed Java leaves them."""

    def create(self) -> None:
        """Creates the folders, and empties the temporary one of an earlier run's files."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        for folder in (self.data, self.logs, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)


def class_path(jars: Sequence[Path]) -> str:
    """Returns a class path that is always the same for the same jars: an archive of classes fits one
    class path only."""
    return ":".join(str(jar) for jar in sorted(jars))


def broker_command(
    java: Java,
    jars: Sequence[Path],
    settings: Settings,
    files: BrokerFiles,
    archive: Sequence[str] = (),
    *,
    properties: Path | None = None,
    agent: Sequence[str] = (),
) -> list[str]:
    """Returns the command line of a broker, with other `properties` of a controller. `agent` is the metrics agent.

    Small heaps use serial collection: on two cores as quick as G1 to within the noise, 160 MB smaller. Both compilers
    are used: the quick one alone saves 0.4 s of a start and keeps up with large batches, but takes twice the CPU for
    small ones.
    """
    small = settings.heap_mb < LARGE_HEAP_MB
    return [
        str(java.program),
        f"-Xmx{settings.heap_mb}m",
        "-XX:+UseSerialGC" if small else "-XX:+UseG1GC",
        *([] if small else ["-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]),
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={files.logs}/jvm-crash-%p.log",
        "-Djava.awt.headless=true",
        f"-Djava.io.tmpdir={files.temporary}",
        f"-Dkeelman.logs={files.logs}",
        f"-Dlog4j2.configurationFile={LOG4J}",
        *archive,
        *agent,
        *settings.jvm_options,
        "-cp",
        class_path(jars),
        "kafka.Kafka",
        str(properties or files.properties),
    ]


async def metrics_agent(settings: Settings, files: BrokerFiles) -> list[str]:
    """Returns the option by which a broker's Java serves its metrics; none without a port for them. Writes the
    selection of metrics, and fetches the jar if it is missing. Raises Unavailable if it cannot be fetched."""
    if not settings.metrics_port:
        return []
    (jar,) = await maven.jars(maven.Lock.read(maven.JMX_EXPORTER))
    write_file(files.metrics, METRICS.encode())
    return [f"-javaagent:{jar}={joined_address(settings.host, settings.metrics_port)}:{files.metrics}"]


async def run_storage_tool(java: Java, jars: Sequence[Path], files: BrokerFiles, cluster_id: str) -> None:
    """Has Kafka's storage tool format the unformatted folders of server.properties.

    Raises Unavailable with the tool's own reason.
    """
    command = [str(java.program), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"]
    command += [f"-Dkeelman.logs={files.logs}", f"-Dlog4j2.configurationFile={LOG4J}", "-cp", class_path(jars)]
    command += ["kafka.tools.StorageTool", "format", "--cluster-id", cluster_id, "--config", str(files.properties)]
    command += ["--ignore-formatted"]  # some folders may be formatted, if an earlier run was killed
    code, text = await run_tool(command)
    if code != 0:
        reason = reason_in(text) or (text.strip().splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"formatting {files.data} failed (exit code {code}): {reason}", reason="FORMAT_FAILED")


async def run_tool(command: Sequence[str]) -> tuple[int, str]:
    """Runs a program that ends by itself; returns its exit code and its output. Cancellation kills it."""
    child = await asyncio.create_subprocess_exec(
        *tethered(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(TOOL_SECONDS):
            said, _ = await child.communicate()
    except TimeoutError:
        raise Unavailable(f"{Path(command[0]).name} did not end within {TOOL_SECONDS:.0f} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert child.returncode is not None
    return child.returncode, said.decode("utf-8", "replace")


class BrokerJvm(JavaProcess):
    """A running broker."""

    def __init__(self, child: asyncio.subprocess.Process, files: BrokerFiles, log_begins: int) -> None:
        super().__init__(child)
        self._files = files
        self._log_begins = log_begins

    async def ended(self) -> None:
        """Waits until the broker ends by itself, always a failure: raises Internal with its exit code and reason."""
        how, may_have_said = await self.end()
        reason = reason_in(self.printed()) if may_have_said else ""
        raise Internal(
            f"the broker ended with {how}{': ' if reason else ''}{reason}; its log is {self._files.log}",
            reason="BROKER_ENDED",
            metadata={"exit": how},
        )

    async def ready(self, host: str, port: int, node_id: int, client: Mapping[str, str], *, first: float) -> None:
        """Returns when the broker answers a client with these properties as a member of its cluster.

        Raises Internal with the reason if it ends before, and Unavailable if it takes longer than `first` seconds, or
        than twice the time of the start before, if that was too slow.
        """
        limit = StartLimit(self._files.start_limit, first)
        seconds = limit.seconds

        async def answers() -> None:
            while True:
                answer = await ask_broker(host, port, client)
                if answer is not None and answer.serves(node_id):
                    return
                await asyncio.sleep(READY_POLL_SECONDS)

        try:
            async with asyncio.timeout(seconds):
                await first_of(self.ended(), answers())
        except TimeoutError:
            raise Unavailable(
                f"the broker did not answer on {host}:{port} within {seconds:g} s: see its log; its next start may "
                f"take {limit.note_slow():g} s (broker.start_seconds is the limit of the first)",
                reason="BROKER_NOT_READY",
            ) from None
        limit.note_ready()

    def printed(self) -> str:
        """Returns the log lines of this run, as far as the newest file contains them."""
        try:
            with self._files.log.open("rb") as stream:
                size = stream.seek(0, 2)
                # A log that has rolled over is shorter than before: then all of it belongs to this run.
                stream.seek(self._log_begins if size >= self._log_begins else 0)
                return stream.read().decode("utf-8", "replace")
        except OSError:
            return ""


@contextlib.asynccontextmanager
async def started(command: Sequence[str], files: BrokerFiles) -> AsyncIterator[BrokerJvm]:
    """Starts the broker, and kills it at the end of the block if it still runs; its data is kept."""
    log_begins = files.log.stat().st_size if files.log.exists() else 0
    async with java_process(command, files.root) as child:
        yield BrokerJvm(child, files, log_begins)


def reason_in(text: str) -> str:
    """Returns the first exception that a Java program printed, else its last error line; empty for none."""
    lines = [line.strip() for line in text.splitlines()]
    for line in lines:
        match = EXCEPTION.match(line)
        if match:
            return f"{match.group(2)} ({match.group(1)})"
    errors = [line for line in lines if " ERROR " in line or " FATAL " in line]
    return errors[-1] if errors else ""
