"""What a machine needs before its first broker: Java, Kafka's jars and the archive of their classes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keelman.broker import archive
from keelman.model.errors import KeelmanError
from keelman.runtime.home import cache_folder
from keelman.runtime.java import installation as java
from keelman.runtime.java import maven


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that is needed to start a broker."""

    java: java.Java
    jars: tuple[Path, ...]
    archive_options: tuple[str, ...]


async def prepare(progress: Callable[[str], None] = lambda line: None) -> Prepared:
    """Finds Java, fetches the jars and makes the class archive, each only if it is missing; quick ever after.

    Raises JavaMissing, Unavailable (jars cannot be fetched), FailedPrecondition (no PySpark, whose Ivy fetches them).
    """
    found = java.find()
    jars = await maven.jars(maven.Lock.read(maven.KAFKA_BROKER), progress=progress)
    classes = archive.place(jars, found, cache_folder())
    if not classes.exists():
        progress("making the archive of Kafka's classes, once, so that brokers start quicker")
        await archive.make(found, jars, classes)
    return Prepared(found, jars, tuple(archive.options(classes)))


async def main() -> int:
    """Prepares and says where; for set-up scripts. Returns the exit code."""
    try:
        prepared = await prepare(lambda line: print(line, file=sys.stderr))
    except KeelmanError as error:
        print(error.message, file=sys.stderr)
        return 1
    print(f"java {prepared.java.version} ({prepared.java.program}), jars {prepared.jars[0].parent}")
    return 0
