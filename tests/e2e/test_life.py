"""Up, up again, killed, up once more, down: one system at a time, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from support.cli.system import Keelman
from support.eventually import eventually

pytestmark = pytest.mark.e2e


async def test_a_killed_system_is_taken_over_and_taken_down(own: Keelman) -> None:
    await own.ok("up", "--detach", "--free-ports")
    again = await own.run("up", "--detach", "--free-ports")
    assert (again.code, "already running" in again.out) == (0, True)
    second = await own.run("up", "--free-ports")
    assert (second.code, "already running" in second.err) == (1, True)
    (broker,) = await own.items("workloads")

    os.kill(own.system["up"]["pid"], signal.SIGKILL)
    await eventually(lambda: len(own.processes()) == 2, every=0.2, what="only the broker and its JVM live on")
    status = await own.run("status")
    assert (status.code, "broker/default/0" in status.out) == (1, True)

    await own.ok("up", "--detach", "--free-ports")
    (taken,) = await own.items("workloads")
    assert taken["status"]["pid"] == broker["status"]["pid"]
    assert taken["status"]["state"] == "WORKLOAD_STATE_RUNNING"

    os.kill(own.system["up"]["pid"], signal.SIGKILL)
    await eventually(lambda: len(own.processes()) == 2, every=0.2, what="only the broker and its JVM live on")
    down = await own.ok("down")
    assert "broker/default/0" in down
    assert own.processes() == []
    assert "nothing runs" in await own.ok("down")


async def test_ctrl_c_drains_a_foreground_system(own: Keelman) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keelman.cli", "up", "--home", str(own.home), "--free-ports", "--no-broker"),
        env=own.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    async with asyncio.timeout(300):
        first = await process.stdout.readline()
    assert first.startswith(b"gateway")
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(300):
        assert await process.wait() == 0
    assert own.processes() == []
    assert not (own.home / "system.json").exists()


async def test_interrupted_while_starting_leaves_nothing(own: Keelman) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keelman.cli", "up", "--detach", "--home", str(own.home), "--free-ports"),
        env=own.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    await eventually((own.home / "system.json").exists, what="services are being started")
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(300):
        assert await process.wait() == 130
    assert own.processes() == []


async def test_a_taken_port_is_named_with_its_flag(own: Keelman) -> None:
    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        ran = await own.run("up", "--detach", "--free-ports", "--port", str(port))
    assert ran.code == 5
    assert str(port) in ran.err
    assert "--port" in ran.err
    assert ran.err.count("\n") == 2, "one line of progress, one of reason"
    assert own.processes() == []
