"""The readers printed in docs/events.md, run verbatim."""

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keelman.model.errors import NotFound
from keelman.rpc.channels import channel
from support.brokers.broker import running_broker
from support.eventually import eventually
from support.places import ROOT
from support.state.service import Clients, StateProcess

pytestmark = pytest.mark.component
READER, WATCHER = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "events.md").read_text(), re.DOTALL)


@contextlib.asynccontextmanager
async def running(program: str, address: str) -> AsyncIterator[list[str]]:
    """The lines that the program prints."""
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, address, stdout=asyncio.subprocess.PIPE)
    lines: list[str] = []

    async def read() -> None:
        while line := await child.stdout.readline():
            lines.append(line.decode().strip())

    reading = asyncio.ensure_future(read())
    try:
        yield lines
    finally:
        assert child.returncode is None
        child.send_signal(signal.SIGTERM)
        await child.wait()
        await reading


def shown(lines: list[str]) -> str:
    return lines[-1].rpartition("of ")[2] if lines else ""


async def is_gone(clients: Clients, name: str) -> bool:
    try:
        await clients.worker_cluster(name)
    except NotFound:
        return True
    return False


@pytest.fixture
async def own_broker(tmp_path: Path) -> AsyncIterator[str]:
    """A broker that has no events yet: those of another system count from 1 too."""
    async with running_broker(tmp_path / "broker") as servers:
        yield servers


async def test_the_readers_follow_what_there_is(own_broker: str, tmp_path: Path) -> None:
    bootstrap = own_broker
    state = StateProcess(tmp_path / "home")
    address = f"127.0.0.1:{state.port}"
    await state.start()
    try:
        async with (
            channel(address) as connection,
            running(READER, bootstrap) as read,
            running(WATCHER, address) as watched,
        ):
            clients = Clients(connection)
            await clients.create_external("default", bootstrap)
            for name in ("one", "two"):
                await clients.create_workers(name, count=1)
            await eventually(lambda: shown(read) == shown(watched) == "['one', 'two']")
            await state.end(signal.SIGKILL)
            await state.start()
            await clients.delete_workers("one")
            await eventually(lambda: is_gone(clients, "one"))
            await eventually(lambda: shown(read) == shown(watched) == "['two']")
            await clients.create_workers("one", count=1)
            await eventually(lambda: shown(read) == shown(watched) == "['one', 'two']")
    finally:
        await state.end()
