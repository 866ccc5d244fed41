"""An archive of the broker's loaded classes: Java maps it instead of reading 46 jars at each start.

Measured on two cores: ready after 1.7 s instead of 2.8 s, with 3.0 instead of 4.8 CPU seconds and 35 MB less. It is
written by a broker that ends, which takes 3 s; so a trial broker writes it once, when the jars are fetched, and no real
one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from keelman.broker.jvm import Files, broker_command, format_storage, started
from keelman.broker.properties import local_host, server_properties, written
from keelman.broker.ready import until_ready
from keelman.broker.settings import Settings
from keelman.broker.storage import new_cluster_id
from keelman.model.errors import KeelmanError
from keelman.runtime.java.installation import Java
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.ports import free_ports

log = get_logger()

TRIAL_SECONDS = 90.0


def place(jars: Sequence[Path], java: Java, cache: Path) -> Path:
    """The archive's path: one for each set of jars and each version of Java."""
    return cache / "classes" / f"{jars[0].parent.name}-java{java.version}.jsa"


def options(archive: Path) -> list[str]:
    """The options that use the archive if it is there; Java itself goes on without one that does not fit."""
    return (
        [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        if (archive.is_file() and archive.stat().st_size)
        else []
    )


async def make(java: Java, jars: Sequence[Path], archive: Path) -> bool:
    """Runs a trial broker in a temporary folder and keeps the archive it leaves; False when that did not work.

    An empty file then remembers the failure, so that it is not tried at each start.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix=f".{archive.stem}-", dir=archive.parent, ignore_cleanup_errors=True
    ) as name:
        home = Path(name)
        port, controller_port = free_ports(2)
        settings = Settings(home=home, port=port, controller_port=controller_port, start_seconds=TRIAL_SECONDS)
        fresh = home / "fresh.jsa"
        files = Files(home)
        files.create()
        files.properties.write_text(written(server_properties(settings)), encoding="latin-1")
        try:
            await format_storage(java, jars, files, new_cluster_id())
            command = broker_command(
                java,
                jars,
                settings,
                files,
                [f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Dkeelman.stderr=OFF"],
            )
            async with started(command, files) as jvm:
                await until_ready(jvm, local_host(settings), port, settings.node_id, seconds=TRIAL_SECONDS)
                await jvm.drain(TRIAL_SECONDS)
            fresh.rename(archive)
        except (KeelmanError, OSError) as error:
            log.warning("class_archive_failed", error=str(error))
            archive.touch()
            return False
    return True
