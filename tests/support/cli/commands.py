"""Runs commands of `keelman` one after the other in one process: their imports take longer than they do."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from keelman.cli.client.system import Process, System
from keelman.runtime.home import Home
from support.cli.system import Ran
from support.gateway.system import System as Running

MANY = """
import contextlib, io, json, sys
from keelman.cli.main import main
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(json.loads(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""
LONGEST = 1 << 20


class Commands:
    """Commands that are run against the system of one home."""

    def __init__(self, process: asyncio.subprocess.Process, home: Path) -> None:
        self.home = home
        self._process = process

    async def run(self, words: Sequence[str], *, seconds: float = 300.0) -> Ran:
        """Runs one command; returns its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([*words, "--home", str(self.home)]).encode() + b"\n")
        async with asyncio.timeout(seconds):
            return Ran(*json.loads(await self._process.stdout.readline()))

    async def ran(self, line: str, code: int = 0) -> Ran:
        """Runs a line, which must end with this code."""
        result = await self.run(line.split())
        assert result.code == code, result
        return result


@contextlib.asynccontextmanager
async def commands(home: Path) -> AsyncIterator[Commands]:
    """Runs commands for as long as the block lasts."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MANY), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LONGEST
    )
    try:
        yield Commands(process, home)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def write_home(system: Running, home: Path) -> None:
    """Makes the folder the home of a running system, so that commands find its gateway."""
    here = Process.of(os.getpid())
    System(here, str(home), "n", system.gateway.address, system.http, "", "", ready=True, services=[]).write(Home(home))
