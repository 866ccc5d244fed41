"""Workers as a user starts them: `keelman worker ...` on the command line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from keelman.runtime.processes.die_with_parent import tethered
from keelman.runtime.processes.ports import free_ports
from support.eventually import eventually
from support.worker.processes import ended

STRINGS = {f"{role}.converter": "org.apache.kafka.connect.storage.StringConverter" for role in ("key", "value")}


class EndedError(Exception):
    """A worker ended unexpectedly; with its last output."""


@dataclass
class Started:
    """`keelman worker ...` in a folder of its own, which is its home too."""

    folder: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    child: asyncio.subprocess.Process | None = None
    more: dict[str, str] = field(default_factory=dict)
    """Additional variables of its environment."""

    @property
    def output(self) -> str:
        """All its output."""
        return (self.folder / "output.log").read_text(errors="replace")

    async def start(self, *words: str) -> Started:
        """Starts it and waits until it is healthy."""
        await self.spawn(*words)
        await eventually(self._healthy, what="the worker is healthy")
        return self

    async def spawn(self, *words: str) -> None:
        """Starts it without waiting."""
        command = tethered([sys.executable, "-m", "keelman.cli", "worker", *words])
        plain = {k: v for k, v in os.environ.items() if not k.startswith("KEELMAN_")}
        cache = {"KEELMAN_CACHE": os.environ["KEELMAN_CACHE"]} if "KEELMAN_CACHE" in os.environ else {}
        with (self.folder / "output.log").open("ab") as output:
            self.child = await asyncio.create_subprocess_exec(
                *command,
                stdout=output,
                stderr=output,
                env={**plain, **cache, **self.more, "KEELMAN_HOME": str(self.folder)},
            )

    async def _healthy(self) -> bool:
        assert self.child is not None
        if self.child.returncode is not None:
            raise EndedError(self.output[-2000:])
        try:
            return (await self.ask("GET", "/health")).status_code == 200
        except httpx.HTTPError:
            return False

    async def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """One REST request."""
        async with httpx.AsyncClient(timeout=300, trust_env=False, verify=False) as client:
            return await client.request(method, f"http://127.0.0.1:{self.port}{path}", json=body)

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Signals it and waits; its exit code."""
        assert self.child is not None
        return await ended(self.child, number)

    def spark(self) -> psutil.Process:
        """The Spark service beside it."""
        assert self.child is not None
        results = [p for p in psutil.Process(self.child.pid).children() if title(p).startswith("keelman spark")]
        return results[0]

    def family(self) -> list[psutil.Process]:
        """All processes below it."""
        assert self.child is not None
        return psutil.Process(self.child.pid).children(recursive=True)


@contextlib.asynccontextmanager
async def folder_of(path: Path) -> AsyncIterator[Started]:
    """A worker that does not outlive its test."""
    path.mkdir(parents=True, exist_ok=True)
    started = Started(path)
    try:
        yield started
    finally:
        if started.child is not None and started.child.returncode is None:
            await started.end(signal.SIGKILL)


def properties(file: Path, values: dict[str, str]) -> str:
    """Writes a .properties file."""
    file.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return str(file)


def lines(file: Path) -> list[str]:
    """The lines of a file that may not exist yet."""
    return file.read_text().splitlines() if file.exists() else []


def title(process: psutil.Process) -> str:
    """The title of a process; empty for a process that ends."""
    with contextlib.suppress(psutil.Error, IndexError):
        return process.cmdline()[0]
    return ""


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them have ended."""
    return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
