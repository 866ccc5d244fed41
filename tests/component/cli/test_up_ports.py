"""`keelman up --free-ports`: the home's own ports, at each start the same."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from pathlib import Path

import pytest

from support.eventually import eventually

pytestmark = pytest.mark.component


class Home:
    """A home and the commands for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def run(self, *words: str) -> tuple[int, str]:
        """Exit code of a command, and all its output."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "keelman.cli", *words, "--home", str(self.folder)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(300):
            out, _ = await process.communicate()
        return process.returncode or 0, out.decode()

    async def up(self) -> tuple[int, str]:
        """Starts the system, or finds it running."""
        code, printed = await self.run("up", "--detach", "--free-ports", "--no-broker")
        assert code == 0, printed
        system = json.loads((self.folder / "system.json").read_text())
        return int(system["gateway"].rpartition(":")[2]), printed


async def test_the_ports_of_a_home_are_kept_until_somebody_else_has_one(tmp_path: Path) -> None:
    home = Home(tmp_path)
    try:
        first, _ = await home.up()
        again, printed = await home.up()
        assert (again, "already running" in printed) == (first, True)
        assert (await home.run("down"))[0] == 0
        second, printed = await home.up()
        assert (second, " is taken " in printed) == (first, False)
        assert (await home.run("down"))[0] == 0
        with socket.create_server(("127.0.0.1", first)):
            third, printed = await home.up()
        assert third != first
        assert f"port {first} is taken by another process: this home" in printed
    finally:
        await home.run("down")


async def test_down_ends_an_up_that_has_only_begun(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    begun = asyncio.create_task(home.run("up", "--detach", "--free-ports", "--no-broker"))
    await eventually(lambda: (home.folder / "up.lock").exists() and (home.folder / "up.lock").read_text(), every=0.01)
    code, printed = await home.run("down")
    assert (code, "stopped the system" in printed) == (0, True), printed
    await begun
    code, printed = await home.run("down")
    assert (code, printed.startswith("nothing runs in")) == (0, True), printed
