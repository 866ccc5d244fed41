"""Runs commands of `keelman` one after the other in one process: their imports take longer than they do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from keelman.cli.machine.system import Process, System
from keelman.runtime.home import Home
from support.gateway_system import System as Running
from support.system_kit import Ran

MANY = """
import contextlib, io, json, sys
from keelman.cli.main import main
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


async def told(commands: Sequence[Sequence[str]], home: Path, *, seconds: float = 120.0) -> list[Ran]:
    """How each command ended, asked of the system of this home."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MANY, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    asked = json.dumps([[*words, "--home", str(home)] for words in commands])
    try:
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate(asked.encode())
    except TimeoutError:
        process.kill()
        raise
    return [Ran(*json.loads(line)) for line in out.splitlines()]


def write_home(system: Running, home: Path) -> None:
    """Makes the folder the home of a running system, so that commands find its gateway."""
    here = Process.of(os.getpid())
    System(here, str(home), "n", system.gateway.address, system.http, "", "", ready=True, services=[]).write(Home(home))
