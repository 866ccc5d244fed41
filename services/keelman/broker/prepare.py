"""Prepares a machine for its first broker: Java, Kafka's jars and an archive of their loaded classes.

Java maps the archive instead of reading 46 jars at each start. Measured on two cores: ready after 1.7 s instead of
2.8 s, with 3.0 instead of 4.8 CPU seconds and 35 MB less. A broker writes the archive when it ends, which takes 3 s; so
a trial broker writes it once, when the jars are fetched, and no real one. The trial broker also serves a topic, a
transaction and a reader, so that the archive has their classes: 0.3 CPU seconds less for a broker's first clients.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.broker.formatting import format_storage
from keelman.broker.jvm import BrokerFiles, broker_command, started
from keelman.broker.properties import local_host, server_properties, written
from keelman.broker.settings import Settings
from keelman.model.cluster import new_cluster_id
from keelman.model.errors import KeelmanError
from keelman.runtime.java import maven
from keelman.runtime.java.class_archive import archive_file, archive_options
from keelman.runtime.java.installation import Java, find
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.ports import free_ports
from keelman.runtime.supervise import first_of

log = get_logger()

TRIAL_SECONDS = 600.0
"""Of a start on a busy machine: a trial that is given up leaves all later brokers without the archive."""
USE_SECONDS = 120.0
"""The limit for the trial broker's use by a client, which takes a second or two."""


@dataclass(frozen=True, slots=True)
class PreparedBroker:
    """The Java, jars and options that start a broker."""

    java: Java
    jars: tuple[Path, ...]
    archive_options: tuple[str, ...]


async def prepare(progress: Callable[[str], None] = lambda line: None) -> PreparedBroker:
    """Finds Java, fetches the jars and builds the class archive, each only if it is missing; later calls are quick.

    Raises JavaMissing, Unavailable (jars cannot be fetched), FailedPrecondition (no PySpark, whose Ivy fetches them).
    """
    installation = find()
    jars = await maven.jars(maven.Lock.read(maven.KAFKA_BROKER), progress=progress)
    archive = archive_file(jars, installation)
    if not archive.exists():
        progress("making the archive of Kafka's classes, once, so that brokers start quicker")
        await _make(installation, jars, archive)
    return PreparedBroker(installation, jars, archive_options(archive))


async def main() -> int:
    """Prepares the machine and prints the places; for set-up scripts. Returns the exit code."""
    try:
        prepared = await prepare(lambda line: print(line, file=sys.stderr))
    except KeelmanError as error:
        print(error.message, file=sys.stderr)
        return 1
    print(f"java {prepared.java.version} ({prepared.java.program}), jars {prepared.jars[0].parent}")
    return 0


async def _make(java: Java, jars: Sequence[Path], archive: Path) -> None:
    """Runs a trial broker in a temporary folder and keeps its archive.

    An empty file records a failure, so that it is not tried again at each start. A cache that this user may only read
    is no failure: the broker starts without an archive.
    """
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=f".{archive.stem}-", dir=archive.parent, ignore_cleanup_errors=True)
    except OSError as error:
        log.warning("class_archive_failed", error=str(error))
        return
    with folder as name:
        home = Path(name)
        port, controller_port = free_ports(2)
        settings = Settings(home=home, port=port, controller_port=controller_port, start_seconds=TRIAL_SECONDS)
        fresh = home / "fresh.jsa"
        files = BrokerFiles(home)
        files.create()
        files.properties.write_text(written(server_properties(settings)), encoding="latin-1")
        try:
            await format_storage(java, jars, settings, files, new_cluster_id())
            options = [f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Dkeelman.stderr=OFF"]
            command = broker_command(java, jars, settings, files, options)
            async with started(command, files) as jvm:
                await jvm.ready(local_host(settings), port, settings.node_id, {}, first=TRIAL_SECONDS)
                try:
                    async with asyncio.timeout(USE_SECONDS):
                        await first_of(jvm.ended(), _use(f"{local_host(settings)}:{port}"))
                except Exception as error:  # any error: the archive is usable without it
                    log.warning("trial_broker_not_used", error=repr(error))
                await jvm.drain(TRIAL_SECONDS)
            fresh.rename(archive)
        except (KeelmanError, OSError) as error:
            log.warning("class_archive_failed", error=str(error))
            archive.touch()


async def _use(bootstrap: str) -> None:
    """Acts like a broker's clients: creates a topic, writes in a transaction, commits a group's offset, reads."""
    from keelman.kafka.positioned_writer import PositionedWriter, WriterPosition  # noqa: PLC0415  (once, of many starts)
    from keelman.kafka.tables.reading import read_topic  # noqa: PLC0415

    properties, name = {"bootstrap.servers": bootstrap}, "keelman-trial"
    async with PositionedWriter.open(properties, name, name) as writer:
        await writer.write(b"key", [b"value"], WriterPosition(1, ""))
        await writer.position()
    await read_topic(properties, name, client_id=name, seconds=TRIAL_SECONDS)
