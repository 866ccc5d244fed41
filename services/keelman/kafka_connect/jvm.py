"""Runs the Java virtual machine of a worker of Apache Kafka Connect."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from keelman.kafka_connect.settings import Settings
from keelman.model.errors import Internal
from keelman.runtime.home import write_file
from keelman.runtime.java import maven
from keelman.runtime.java.installation import find
from keelman.runtime.java.process import JavaProcess, java_process

LOG4J = Path(__file__).with_name("log4j2.xml")
MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
OPTIONS_OF = ("KAFKA_OPTS",)
"""Environment variables with Java options, as Kafka Connect's start scripts read them."""
KEPT_AWAY = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
SMALL_HEAP_MB = 2048
LAST_BYTES = 1 << 16
METRICS = """lowercaseOutputName: true
lowercaseOutputLabelNames: true
includeObjectNames: ["kafka.connect:*", "kafka.consumer:*", "kafka.producer:*", "kafka.admin.client:*", "java.lang:*"]
rules:
  - pattern: ".*"
"""
_EXCEPTION = re.compile(r"^(?:Caused by: )?(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error)): (.+)$")


async def command_of(settings: Settings, environment: Mapping[str, str]) -> list[str]:
    """Returns the command line of a worker; fetches missing jars, and writes its configuration of metrics.

    Raises JavaMissing, Unavailable (jars cannot be fetched), FailedPrecondition (no PySpark, whose Ivy fetches them).
    """
    java = find()
    jars = [*await maven.jars(maven.Lock.read(maven.KAFKA_CONNECT))]
    for folder in settings.libraries:
        jars += sorted(Path(folder).rglob("*.jar"))
    home = settings.home.absolute()
    agent = []
    if settings.metrics_port:
        (jar,) = await maven.jars(maven.Lock.read(maven.JMX_EXPORTER))
        write_file(home / "metrics.yaml", METRICS.encode())
        agent = [f"-javaagent:{jar}={settings.metrics_host}:{settings.metrics_port}:{home / 'metrics.yaml'}"]
    small = settings.heap_mb < SMALL_HEAP_MB
    return [
        str(java.program),
        f"-Xmx{settings.heap_mb}m",
        "-XX:+UseSerialGC" if small else "-XX:+UseG1GC",
        "-XX:+ExitOnOutOfMemoryError",
        f"-XX:ErrorFile={home}/jvm-crash-%p.log",
        "-Djava.awt.headless=true",
        *([f"-Djava.io.tmpdir={environment['TMPDIR']}"] if "TMPDIR" in environment else []),
        f"-Dkeelman.home={home}",
        f"-Dlog4j2.configurationFile={LOG4J}",
        *agent,
        *(option for name in OPTIONS_OF for option in environment.get(name, "").split()),
        *settings.jvm_options,
        "-cp",
        ":".join(map(str, jars)),
        MAIN,
        str(settings.properties_file),
    ]


class WorkerJvm(JavaProcess):
    """A running worker."""

    def __init__(self, child: asyncio.subprocess.Process, home: Path) -> None:
        super().__init__(child)
        self._home = home

    async def ended(self) -> None:
        """Waits until the worker ends by itself, always a failure: raises Internal with its exit code and reason."""
        how, may_have_said = await self.end()
        reason = reason_in(self._errors()) if may_have_said else ""
        raise Internal(
            f"the worker of Apache Kafka Connect ended with {how}{': ' if reason else ''}{reason}",
            reason="CONNECT_ENDED",
            metadata={"exit": how},
        )

    def _errors(self) -> str:
        try:
            return (self._home / "errors.log").read_bytes()[-LAST_BYTES:].decode("utf-8", "replace")
        except OSError:
            return ""


@contextlib.asynccontextmanager
async def started(command: Sequence[str], home: Path) -> AsyncIterator[WorkerJvm]:
    """Starts the worker, and kills it at the end of the block if it still runs."""
    (home / "errors.log").unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in (*OPTIONS_OF, *KEPT_AWAY)}
    async with java_process(command, home, environment) as child:
        yield WorkerJvm(child, home)


def reason_in(text: str) -> str:
    """Returns the cause at the bottom of the first trace in Java's log, else the first line; empty for none."""
    lines = text.splitlines()
    cause = ""
    for line in lines:
        match = _EXCEPTION.match(line.strip())
        if match and (not cause or line.startswith("Caused by: ")):
            cause = f"{match.group(2)} ({match.group(1)})"
    return cause or (lines[0].strip() if lines else "")
