"""A real schema registry for tests: Apicurio Registry, whose Confluent-compatible API is under /apis/ccompat/v7.

It keeps its schemas in memory, so a restarted one knows none; `keep` has it keep them in a file. It needs Java 21.
Its start takes about 7 CPU seconds, and it 250 MB: once a session, only where a test asks for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tarfile
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from keelman.runtime.home import cache_folder
from keelman.runtime.java import maven
from keelman.runtime.java.installation import JavaMissing, find
from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports

LOCK = Path(__file__).with_name("apicurio_registry.lock")
MINIMUM_JAVA = 21
START_SECONDS = 240.0
STOP_SECONDS = 30.0
_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")


def missing() -> str:
    """Why there can be no registry here: no Java that is new enough; empty when there can."""
    try:
        find(minimum=MINIMUM_JAVA)
    except JavaMissing as error:
        return error.message
    return ""


@dataclass(slots=True)
class RegistryProcess:
    """One registry in `home`; started and stopped as often as a test likes, on the same port."""

    home: Path
    keep: bool = False
    """Its schemas outlive it, in a file under `home`."""
    port: int = 0
    management_port: int = 0
    _child: asyncio.subprocess.Process | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.port:
            self.port, self.management_port = free_ports(2)

    @property
    def url(self) -> str:
        """What `schema.registry.url` is for it."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    @property
    def output(self) -> str:
        """All that it wrote, over all its starts."""
        file = self.home / "registry.log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    async def start(self) -> None:
        """Starts it and waits until it answers. Raises AssertionError with its output when it does not."""
        program, folder = find(minimum=MINIMUM_JAVA).program, await unpacked()
        self.home.mkdir(parents=True, exist_ok=True)
        more = {"QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(self.port)}
        more |= {"QUARKUS_MANAGEMENT_HOST": "127.0.0.1", "QUARKUS_MANAGEMENT_PORT": str(self.management_port)}
        if self.keep:
            more["APICURIO_DATASOURCE_URL"] = f"jdbc:h2:file:{self.home / 'schemas'}"
        plain = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
        command = [str(program), *_FLAGS, "-jar", str(folder / "quarkus-run.jar")]
        with (self.home / "registry.log").open("ab") as output:
            self._child = await asyncio.create_subprocess_exec(
                *tethered(command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**plain, **more},
                cwd=self.home,
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS), httpx.AsyncClient(timeout=5, trust_env=False) as client:
                while self._child.returncode is None:
                    with contextlib.suppress(httpx.HTTPError):
                        if (await client.get(f"{self.url}/subjects")).status_code == 200:
                            return
                    await asyncio.sleep(0.1)
        code = self._child.returncode
        await self.end(signal.SIGKILL)
        raise AssertionError(f"the schema registry did not start (exit code {code}):\n{self.output[-4000:]}")

    async def end(self, number: int = signal.SIGTERM) -> None:
        """Sends the signal and waits; after a time it is killed. One that has ended is left as it is."""
        child, self._child = self._child, None
        if child is None or child.returncode is not None:
            return
        child.send_signal(number)
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await child.wait()
        except TimeoutError:
            child.kill()
            await child.wait()


async def unpacked() -> Path:
    """The folder of the registry's program, fetched and unpacked once into the cache."""
    lock = maven.Lock.read(LOCK)
    folder = cache_folder() / "registry" / f"{lock.name}-{lock.digest[:8]}"
    if not folder.is_dir():
        (archive,) = await maven.jars(lock)
        folder.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_unpack, archive, folder)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, ignore_cleanup_errors=True) as name:
        fresh = Path(name) / "program"
        with tarfile.open(archive) as stream:
            stream.extractall(fresh, filter="data")
        with contextlib.suppress(OSError):  # another process was quicker
            fresh.rename(folder)


@contextlib.asynccontextmanager
async def running_registry(home: Path, *, keep: bool = False) -> AsyncIterator[RegistryProcess]:
    """A registry that ends with its block; its `url` is for converters."""
    registry = RegistryProcess(home, keep=keep)
    await registry.start()
    try:
        yield registry
    finally:
        await registry.end()
