"""`keelman get --watch` over the deaths of the gateway and of the state service: each change once, in order."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from keelman.rpc.channels import channel
from support.eventually import eventually
from support.gateway.system import state_and_gateway
from support.state.service import Agent, Clients

pytestmark = pytest.mark.component


class Watching:
    """`keelman get KIND --watch -o json` and the documents that it has printed."""

    def __init__(self, gateway: str, *words: str) -> None:
        self.command = [sys.executable, "-m", "keelman.cli", "get", *words, "--watch", "-o", "json"]
        self.command += ["--gateway", gateway]
        self.documents: list[dict[str, Any]] = []
        self.remarks = ""

    async def __aenter__(self) -> "Watching":
        pipe = asyncio.subprocess.PIPE
        self.child = await asyncio.create_subprocess_exec(*self.command, stdout=pipe, stderr=pipe)
        self.reading = asyncio.gather(self._documents(), self._remarks())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.child.send_signal(signal.SIGINT)
        await self.child.wait()
        await self.reading

    async def _documents(self) -> None:
        while line := await self.child.stdout.readline():
            self.documents.append(json.loads(line))

    async def _remarks(self) -> None:
        while line := await self.child.stderr.readline():
            self.remarks += line.decode()


async def test_each_change_is_shown_once(tmp_path: Path) -> None:
    async with state_and_gateway(tmp_path) as (state, gateway):
        async with channel(f"127.0.0.1:{state.port}") as connection, Watching(gateway.address, "bc") as seen:
            clients = Clients(connection)
            await clients.create_external("one", "127.0.0.1:1")
            await eventually(lambda: seen.documents, what="the present values are shown")
            gateway.stop(signal.SIGKILL)
            await clients.create_external("two", "127.0.0.1:1")
            await gateway.start()
            await eventually(lambda: seen.documents[-1]["name"] == "two")
            await state.end(signal.SIGKILL)
            await state.start()
            await clients.create_external("three", "127.0.0.1:1")
            await eventually(lambda: seen.documents[-1]["name"] == "three")
        assert seen.child.returncode == 0
        assert "changes in the meantime are shown later" in seen.remarks
    etags = [int(d["etag"]) for d in seen.documents]
    assert etags == sorted({*etags})


async def test_workers_are_shown_as_their_processes_change(tmp_path: Path) -> None:
    async with (
        state_and_gateway(tmp_path) as (state, gateway),
        channel(f"127.0.0.1:{state.port}") as connection,
        Agent(Clients(connection), "n1") as agent,
    ):
        clients = agent.clients
        await clients.create_external("default", "127.0.0.1:1")
        await clients.create_workers("demo", count=1)
        async with (
            Watching(gateway.address, "workers", "--cluster", "demo") as seen,
            Watching(gateway.address, "node", "n1") as node,
        ):
            await eventually(lambda: node.documents)
            await clients.start_workers("demo")
            await eventually(lambda: process_states(seen)[-1:] == ["WORKLOAD_STATE_RUNNING"])
            await clients.stop_workers("demo")
            await clients.delete_workers("demo")
            await eventually(lambda: "worker/demo/0 is gone" in seen.remarks)
        assert {(d["name"], d["node"]) for d in seen.documents} == {("demo/0", "n1")}
        assert seen.documents[-1]["rest_url"].startswith("http://127.0.0.1:")
        assert len(node.documents) == 1, "a heartbeat is no change"


def process_states(seen: Watching) -> list[str]:
    return [(d.get("process") or {}).get("state", "") for d in seen.documents]
