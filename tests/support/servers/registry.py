"""Runs a real schema registry: Apicurio Registry, whose Confluent-compatible API is under /apis/ccompat/v7.

It keeps its schemas in memory, so a restarted registry knows none; `keep` makes it keep them in a file. It needs Java
21. Its start takes about 7 CPU seconds, and it takes 250 MB: it runs once a session, only where a test requests it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tarfile
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from keelman.runtime.home import cache_folder
from keelman.runtime.java import maven
from keelman.runtime.java.installation import JavaMissing, find
from keelman.runtime.processes.ports import free_ports
from support.program import Program

LOCK = Path(__file__).with_name("apicurio_registry.lock")
MINIMUM_JAVA = 21
START_SECONDS = 300.0
_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")


def missing() -> str:
    """The reason why there can be no registry here: no recent enough Java; empty when there can."""
    try:
        find(minimum=MINIMUM_JAVA)
    except JavaMissing as error:
        return error.message
    return ""


@dataclass
class RegistryProcess(Program):
    """One registry in `home`; started and stopped as often as a test likes, on the same port."""

    home: Path
    keep: bool = False
    """Its schemas outlive it, in a file under `home`."""
    port: int = 0
    management_port: int = 0

    def __post_init__(self) -> None:
        super().__init__("the schema registry", self.home / "registry.log")
        if not self.port:
            self.port, self.management_port = free_ports(2)

    @property
    def url(self) -> str:
        """The value of `schema.registry.url` for it."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    async def start(self) -> None:
        """Starts it and waits until it answers. Raises AssertionError with its output when it does not."""
        program, folder = find(minimum=MINIMUM_JAVA).program, await unpacked()
        more = {"QUARKUS_HTTP_HOST": "127.0.0.1", "QUARKUS_HTTP_PORT": str(self.port)}
        more |= {"QUARKUS_MANAGEMENT_HOST": "127.0.0.1", "QUARKUS_MANAGEMENT_PORT": str(self.management_port)}
        if self.keep:
            more["APICURIO_DATASOURCE_URL"] = f"jdbc:h2:file:{self.home / 'schemas'}"
        plain = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}
        command = [str(program), *_FLAGS, "-jar", str(folder / "quarkus-run.jar")]
        await self.run(command, env={**plain, **more}, cwd=self.home)
        await self.answers(self._answers, START_SECONDS)

    async def _answers(self) -> bool:
        try:
            async with httpx.AsyncClient(timeout=5, trust_env=False, verify=False) as client:
                return (await client.get(f"{self.url}/subjects")).status_code == 200
        except httpx.HTTPError:
            return False


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
