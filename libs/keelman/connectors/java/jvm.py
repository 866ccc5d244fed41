"""The Java virtual machine of this process: started once, with bounds, and never again.

It is started after the fork and after `faulthandler.enable()`: the machine's own null checks end a process in which
faulthandler comes later. What ends the process must be `os._exit`: Python's own end waits for plugins' threads.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import os
import sys
import threading
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from keelman.model.errors import FailedPrecondition, Unavailable
from keelman.runtime.home import cache_folder
from keelman.runtime.java import installation, maven
from keelman.runtime.java.class_archive import archive_file, archive_options
from keelman.runtime.java.ivy import Progress
from keelman.runtime.java.machine_options import (
    CODE_CACHE_BYTES,
    DEFAULT_HEAP_BYTES,
    DIRECT_BYTES,
    MACHINE_SECONDS,
    METASPACE_BYTES,
)
from keelman.runtime.logs.logging import get_logger
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.standstill import standstill

log = get_logger()
CONNECT_RUNTIME = Path(__file__).with_name("connect_runtime.lock")
STACK_KIB = 512
ARCHIVE_SECONDS = 60.0
MISSING = "Java plugins need JPype, which is not installed: pip install 'keelman[java]'"


@dataclass(frozen=True, slots=True)
class JvmOptions:
    """Options of a virtual machine. `quick` compiles less: for processes that answer a few questions and end."""

    heap_bytes: int = DEFAULT_HEAP_BYTES
    quick: bool = False
    more: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """For the machine's command line; `more` comes last, so that it wins."""
        return [
            f"-Xmx{max(16 << 20, self.heap_bytes) >> 20}m",
            f"-XX:MaxMetaspaceSize={METASPACE_BYTES >> 20}m",
            f"-XX:ReservedCodeCacheSize={CODE_CACHE_BYTES >> 20}m",
            f"-XX:MaxDirectMemorySize={DIRECT_BYTES >> 20}m",
            f"-Xss{STACK_KIB}k",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-XX:+ExitOnOutOfMemoryError",
            f"-XX:ErrorFile={Path.cwd()}/hs_err_%p.log",
            "-Xrs",
            "-Djava.awt.headless=true",
            "-Dlog4j2.contextSelector=org.apache.logging.log4j.core.selector.BasicContextSelector",
            "-Dlog4j2.isThreadContextMapInheritable=true",
            *(["-XX:TieredStopAtLevel=1"] if self.quick else []),
            *self.more,
        ]


_started: JvmOptions | None = None
_starting = threading.Lock()


def jpype() -> ModuleType:
    """The library that brings Java into this process. Raises FailedPrecondition where it is not installed."""
    try:
        return importlib.import_module("jpype")
    except ImportError:
        raise FailedPrecondition(MISSING, reason="JPYPE_MISSING") from None


def runtime_jars() -> tuple[Path, ...]:
    """Kafka Connect's own classes, as they are in the cache. Raises Unavailable before they were fetched."""
    jars = maven.cached(maven.Lock.read(CONNECT_RUNTIME), cache_folder())
    if jars is None:
        raise Unavailable("the jars of Kafka Connect's runtime are not in the cache", reason="JARS_UNAVAILABLE")
    return jars


async def fetch_runtime_jars(progress: Progress = lambda line: None) -> tuple[Path, ...]:
    """Returns the runtime's jars, and fetches missing ones. Raises as `maven.jars` does."""
    return await maven.jars(maven.Lock.read(CONNECT_RUNTIME), progress=progress)


async def prepare(progress: Progress) -> None:
    """Fetches the jars that a virtual machine needs, and makes the archive of its classes, each only if it is missing.

    Raises FailedPrecondition without Java or JPype, and as `fetch_runtime_jars`.
    """
    if importlib.util.find_spec("jpype") is None:
        raise FailedPrecondition(MISSING, reason="JPYPE_MISSING")
    java = await asyncio.to_thread(installation.find)
    archive = archive_file(await fetch_runtime_jars(progress), java)
    if not archive.exists():
        progress("making the archive of Kafka Connect's classes, once, so that Java starts quicker in slots")
        await _make_archive(archive)


async def _make_archive(file: Path) -> None:
    """Makes it in a process of its own. An empty file remembers a failure; a machine starts without an archive too."""
    command = tethered([sys.executable, "-m", "keelman.connectors.java.archive"])
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        try:
            async with asyncio.timeout(ARCHIVE_SECONDS):
                _, said = await process.communicate()
        except TimeoutError:
            process.kill()
            _, said = await process.communicate()
        if process.returncode != 0:
            log.warning("class_archive_failed", exit_code=process.returncode, output=said.decode(errors="replace"))
            file.touch()
    except OSError as error:  # a cache that this user may only read
        log.warning("class_archive_failed", error=str(error))


def start(options: JvmOptions) -> None:
    """Starts the virtual machine with Connect's runtime, unless it runs already. All threads are stopped meanwhile.

    Raises FailedPrecondition without Java (JAVA_MISSING) or JPype, Unavailable when it does not start.
    """
    library = jpype()
    with _starting:
        if not library.isJVMStarted():
            _start(library, options)


def _start(library: ModuleType, options: JvmOptions) -> None:
    global _started  # noqa: PLW0603  a process has one machine in its life
    if _started is not None:
        raise Unavailable("this process had a Java virtual machine that has ended", reason="JVM_LOST")
    java = installation.find(ask=installation.released)
    jars = runtime_jars()
    os.environ.setdefault("JAVA_HOME", str(java.home))
    try:
        with standstill(MACHINE_SECONDS):
            library.startJVM(
                str(java.home / "lib" / "server" / "libjvm.so"),
                *archive_options(archive_file(jars, java)),
                *options.arguments(),
                classpath=[str(jar) for jar in jars],
                convertStrings=False,
            )
    except (OSError, RuntimeError) as error:
        note = f" (with {' '.join(options.more)})" if options.more else ""
        raise Unavailable(f"Java {java.version} did not start{note}: {error}", reason="JVM_FAILED") from error
    _started = options


@functools.cache
def java_class(name: str) -> Any:
    """A class of the runtime by its full name; the machine runs."""
    return jpype().JClass(name)
