"""Makes the class data archive that halves the start of Spark's JVM: `python -m keelman.spark.archive`.

A set-up step of about half a minute, once for each Java and PySpark; without it the service starts all the same, only
later. The archive appears complete or not at all.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from keelman.model.errors import Internal, KeelmanError
from keelman.runtime.java.installation import find
from keelman.spark.data_sets.reads import SCHEMA
from keelman.spark.masters.class_archive import linked_archive
from keelman.spark.masters.driver import load_pyspark, open_session, session_configuration
from keelman.spark.masters.executors import Executors
from keelman.spark.masters.jvm import JvmGateway, command, end, jvm
from keelman.spark.service import package_roots
from keelman.spark.settings import Settings
from keelman.workers.spark_master import Master

WRITE_SECONDS = 300.0
MASTER = Master.of("local[4,1]")


async def make_archive(*, heap_mb: int = 512) -> Path:
    """Starts Spark once, runs the jobs that every service runs, and keeps the classes that it loaded. Returns the
    file."""
    java = find()
    archive = linked_archive(java)
    if archive.made:
        return archive.file
    archive.file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.file.parent, prefix="making-") as name:
        folder = Path(name)
        file = folder / "classes.jsa"
        options = [f"-XX:ArchiveClassesAtExit={file}"]
        line = command(java, heap_mb=heap_mb, folder=folder, options=options)
        executors = Executors.of(Settings(), MASTER, None, [str(p) for p in package_roots()], ())
        async with jvm(line, executors.variables, folder) as (process, gateway):
            configuration = session_configuration(MASTER.url, str(folder)) | executors.configuration
            await asyncio.to_thread(_exercise, gateway, configuration)
            await end(process, WRITE_SECONDS)
        if not file.is_file():
            raise Internal(f"Java {java.version} wrote no class data archive: see its lines above")
        os.replace(file, archive.file)
    return archive.file


def _exercise(gateway: JvmGateway, configuration: Mapping[str, str]) -> None:
    load_pyspark()
    session = open_session(gateway, configuration)
    session.sparkContext.setJobGroup("warm-up", "warm-up", interruptOnCancel=True)
    session.range(0, 1, 1, 1).mapInArrow(list, SCHEMA).collect()
    session.sparkContext.cancelJobGroup("warm-up")


def main() -> int:
    """Makes the archive if it is not there; prints its path."""
    try:
        print(asyncio.run(make_archive()))
    except KeelmanError as error:
        print(f"keelman.spark.archive: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
