"""Spark's JVM: the command that starts it quickly, and the process, tied to ours so that it never outlives us."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from keelman.model.errors import Unavailable
from keelman.runtime.java.installation import Java
from keelman.runtime.processes.die_with_parent import tethered
from keelman.spark.masters.class_archive import archive_of

START_SECONDS = 300.0
END_SECONDS = 1.5
# The packages that Spark's own launcher opens (org.apache.spark.launcher.JavaModuleOptions).
OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
# The driver mostly starts jobs and waits, so it is tuned for a quick start and a small size. The slow compiler is for
# the rows of data sets: ten times its usual thresholds keep it from the start (docs/decisions/0007-spark-formats.md).
QUICK = (
    "-XX:+UseSerialGC",
    *("-XX:Tier4InvocationThreshold=50000", "-XX:Tier4MinInvocationThreshold=6000"),
    *("-XX:Tier4CompileThreshold=150000", "-XX:Tier4BackEdgeThreshold=400000"),
    "-XX:-UsePerfData",
    "-Xms32m",
    "-Xss512k",
    "-XX:ReservedCodeCacheSize=64m",
    "-XX:MaxMetaspaceSize=256m",
    "-XX:+ExitOnOutOfMemoryError",
)
# At an address other than its own the archive is patched all over, and no page of it remains the file's.
SHARED = ("-Xshare:auto", "-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")


@dataclass(frozen=True, slots=True)
class JvmGateway:
    """The address of the JVM for py4j."""

    port: int
    secret: str


def command(java: Java, *, heap_mb: int, folder: Path, options: Sequence[str] = ()) -> list[str]:
    """Returns the command line of a JVM that py4j drives. `options` are further JVM flags; with them no archive is
    used.

    It starts the gateway class itself: spark-submit costs two more program starts, and a local master needs none of it.
    """
    archive = archive_of(java)
    shared = [f"-XX:SharedArchiveFile={archive.file}", *SHARED] if archive.made and not options else []
    return [
        str(java.program),
        *QUICK,
        f"-Xmx{heap_mb}m",
        *shared,
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        *options,
        *(f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in OPENED),
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        f"-Djava.io.tmpdir={folder}",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "-cp",
        archive.class_path(),
        "org.apache.spark.api.python.PythonGatewayServer",
    ]


@contextlib.asynccontextmanager
async def jvm(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> AsyncIterator[tuple[Process, JvmGateway]]:
    """Starts the JVM and waits for its gateway; on leaving lets it end, then kills it.

    In `folder`, which only this user may read, the JVM writes its gateway's port and secret. Enter it from the main
    thread (see keelman.runtime.processes.die_with_parent). Raises Unavailable when the JVM ends before that.
    """
    info = folder / "gateway"
    info.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        *tethered(command),
        stdin=asyncio.subprocess.PIPE,
        env={**environment, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info)},
    )
    try:
        yield process, await _gateway(process, info)
    finally:
        await end(process)


async def end(process: Process, seconds: float = END_SECONDS) -> None:
    """Ends the JVM: it leaves by itself when its standard input closes; after `seconds` it is killed."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _gateway(process: Process, info: Path) -> JvmGateway:
    try:
        async with asyncio.timeout(START_SECONDS):
            while not info.is_file():
                if process.returncode is not None:
                    raise Unavailable(
                        f"Spark's JVM ended while it started (exit code {process.returncode}): see its lines above",
                        reason="SPARK_LOST",
                    )
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise Unavailable(f"Spark's JVM did not start within {START_SECONDS:.0f} s", reason="SPARK_LOST") from None
    raw = info.read_bytes()
    length = int.from_bytes(raw[4:8], "big")
    return JvmGateway(int.from_bytes(raw[:4], "big"), raw[8 : 8 + length].decode())
