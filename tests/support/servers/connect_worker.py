"""Runs a real Apache Kafka Connect worker from its Maven artifacts: the peer of benchmarks and of take-overs.

It is started as its own scripts start it: the same JVM flags and heap (bin/kafka-run-class.sh and
connect-distributed.sh of Apache Kafka 4.3), the same main class.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from keelman.runtime.java import maven
from keelman.runtime.java.installation import find
from keelman.runtime.processes.ports import free_ports
from keelman.workers.rest.asking import is_momentary
from support.program import Program

START_SECONDS = 300.0
REBALANCE_SECONDS = 300.0
AS_SHIPPED = (
    "-server",
    "-Xms256M",
    "-Xmx2G",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
LOGGING = """<Configuration status="warn">
  <Appenders>
    <Console name="out"><PatternLayout pattern="[%d] %p %X{connector.context}%m (%c:%L)%n"/></Console>
  </Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


@dataclass
class ConnectProcess(Program):
    """One distributed worker; started and stopped as often as a test likes.

    `properties` go over the defaults of a worker with string converters; it listens on a free port of loopback.
    """

    folder: Path
    bootstrap: str
    group: str
    properties: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    more_jars: tuple[Path, ...] = ()
    """Added after its own jars on the class path."""
    options: tuple[str, ...] = ()
    """Options of the JVM, added after the default ones."""
    standalone: tuple[Path, ...] | None = None
    """Files of connectors: it then runs alone, with its offsets in `offset_file`."""

    def __post_init__(self) -> None:
        super().__init__("Kafka Connect", self.folder / "connect.log")
        self.port = self.port or free_ports(1)[0]

    @property
    def url(self) -> str:
        """Its REST API."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def offset_file(self) -> Path:
        """The file of its offsets when it is standalone."""
        return self.folder / "offsets"

    def worker_properties(self) -> dict[str, str]:
        """The content of its properties file."""
        return {
            "bootstrap.servers": self.bootstrap,
            "group.id": self.group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": f"{self.group}-configs",
            "offset.storage.topic": f"{self.group}-offsets",
            "status.storage.topic": f"{self.group}-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "listeners": self.url,
            **({} if self.standalone is None else {"offset.storage.file.filename": str(self.offset_file)}),
            **self.properties,
        }

    async def start(self) -> ConnectProcess:
        """Starts it and waits until its REST API lists connectors. Raises AssertionError with its output."""
        jars = await maven.jars(maven.Lock.read(maven.KAFKA_CONNECT))
        self.folder.mkdir(parents=True, exist_ok=True)
        file, logging = self.folder / "connect.properties", self.folder / "log4j2.xml"
        file.write_text("".join(f"{k}={v}\n" for k, v in self.worker_properties().items()))
        logging.write_text(LOGGING)
        command = [str(find().program), *AS_SHIPPED, *self.options, f"-Dlog4j2.configurationFile={logging}", "-cp"]
        command += [
            ":".join(map(str, [*jars, *self.more_jars])),
            f"org.apache.kafka.connect.cli.Connect{'Distributed' if self.standalone is None else 'Standalone'}",
            str(file),
            *map(str, self.standalone or ()),
        ]
        plain = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
        await self.run(command, env=plain)
        await self.answers(self._answers, START_SECONDS)
        return self

    async def _answers(self) -> bool:
        try:
            return (await self.ask("GET", "/connectors")).status_code == 200
        except httpx.HTTPError:
            return False

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """Sends one REST request, and repeats it for REBALANCE_SECONDS if a rebalance prevents the answer."""
        end = time.monotonic() + REBALANCE_SECONDS
        async with httpx.AsyncClient(timeout=300, trust_env=False, verify=False) as client:
            while True:
                answer = await client.request(method, f"{self.url}{path}", json=body)
                if not is_momentary(answer.status_code, answer.content) or time.monotonic() >= end:
                    return answer
                await asyncio.sleep(0.2)
