"""A whole system as a user starts it: the command line in processes of its own, a home in a temporary folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from support.eventually import eventually

FILE = "org.apache.kafka.connect.file.FileStream"
LOOK_SECONDS = 1.0
"""The pause between looks by a command: each is a process that takes a second of a processor."""
PATIENCE_SECONDS = 600.0
"""How long a command may wait, by `--wait` and in all: a machine with much else to do needs minutes for a start."""
STRING = "org.apache.kafka.connect.storage.StringConverter"


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished command."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Keelman:
    """The command line with one home."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """Names the home for every started process, so that each can be identified: titles hide command lines."""
        return {**os.environ, "KEELMAN_HOME": str(self.home)}

    async def run(self, *words: str, seconds: float = PATIENCE_SECONDS + 60) -> Ran:
        """Runs one command to its end, whatever its exit code."""
        if "--wait" in words and "--timeout" not in words:
            words = (*words, "--timeout", f"{PATIENCE_SECONDS:g}")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "keelman.cli",
            *words,
            "--home",
            str(self.home),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
        return Ran(process.returncode or 0, out.decode(), err.decode())

    async def ok(self, *words: str, seconds: float = PATIENCE_SECONDS + 60) -> str:
        """Runs one command that must succeed; returns its output."""
        ran = await self.run(*words, seconds=seconds)
        assert ran.code == 0, f"keelman {' '.join(words)}: exit {ran.code}\n{ran.out}\n{ran.err}\n{self.logs()}"
        return ran.out

    async def items(self, kind: str, *words: str) -> list[dict[str, Any]]:
        """The items of `keelman get KIND -o json`."""
        items: list[dict[str, Any]] = json.loads(await self.ok("get", kind, "-o", "json", *words))["items"]
        return items

    async def item(self, kind: str, name: str) -> dict[str, Any]:
        """The item of `keelman get KIND NAME -o json`."""
        item: dict[str, Any] = json.loads(await self.ok("get", kind, name, "-o", "json"))
        return item

    @property
    def system(self) -> dict[str, Any]:
        """The description that `keelman up` wrote of its system."""
        system: dict[str, Any] = json.loads((self.home / "system.json").read_text())
        return system

    def pid_of(self, service: str) -> int:
        """Process id of one of the services of `keelman up`, at present."""
        return next(int(s["process"]["pid"]) for s in self.system["services"] if s["name"] == service)

    def processes(self) -> list[psutil.Process]:
        """Every living process of this home."""
        processes = []
        for process in psutil.process_iter():
            try:
                if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                words = " ".join((*process.cmdline(), *process.environ().values()))
            except psutil.Error:
                continue
            if str(self.home) in words:
                processes.append(process)
        return processes

    def logs(self, lines: int = 15) -> str:
        """The ends of all logs, for a failing test's message."""
        told = []
        for file in sorted([*self.home.glob("logs/*.log"), *self.home.glob("workloads/*/log")]):
            tail = "\n".join(file.read_text(errors="replace").splitlines()[-lines:])
            told.append(f"--- {file.relative_to(self.home)}\n{tail}")
        return "\n".join(told)

    async def gone(self, *, seconds: float = 300.0) -> None:
        """Waits until no process of this home is left."""
        await eventually(
            lambda: not self.processes(), seconds=seconds, every=0.2, what=f"processes of {self.home} are gone"
        )

    async def cleaned(self) -> None:
        """Leaves no process behind, whatever the test's result; does not wait for an orderly end."""

        def gone() -> bool:
            self.kill_everything()  # also processes started meanwhile
            return not self.processes()

        await eventually(gone, every=0.2, what=f"processes of {self.home} are gone")

    def kill_everything(self) -> None:
        """Sends kill -9 to every process of this home; some end each other first."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)


def numbered(first: int, count: int) -> bytes:
    """Lines that contain their number, so that a lost, doubled or moved line shows."""
    return b"".join(b"%07d %s\n" % (n, b"x" * (n % 80)) for n in range(first, first + count))
