"""Members of an installation with several state services.

One service ends, and the members use another by the addresses that joining gave them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from keelman.api.access.v1.join_token_pb2 import JOIN_ROLE_GATEWAY
from keelman.api.node.v1.node_service_pb2 import ListNodesRequest
from keelman.model.access.join_token import JoinRole
from keelman.model.errors import Unavailable
from keelman.rpc.generated import stub_of
from keelman.rpc.health import is_serving
from keelman.runtime.home import Home
from keelman.runtime.processes.ports import free_ports
from keelman.state.service import run
from keelman.state.settings import Settings
from support.eventually import eventually
from support.servers.postgresql import BINARIES, started_postgresql
from support.state.trust import ONLINE, Installation, installation

pytestmark = [
    pytest.mark.component,
    pytest.mark.skipif(not BINARIES, reason="PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/postgres"),
]


@pytest.fixture
def url() -> Iterator[str]:
    with started_postgresql() as database:
        yield database()


@contextlib.asynccontextmanager
async def another(home: Home, port: int, **fields: Any) -> AsyncIterator[asyncio.Event]:
    """A state service on the same database; ends once the event is set, and at the end."""
    stop = asyncio.Event()
    task = asyncio.ensure_future(run(Settings(home=home.root, port=port, trust="installation", **fields), stop))
    try:
        await eventually(lambda: task.done() or is_serving(f"unix:{home.socket('state')}"), what="the second serves")
        yield stop
    finally:
        stop.set()
        await task


async def test_they_go_to_the_other_one(tmp_path: Path, url: str) -> None:
    first, second = free_ports(2)
    shared = {
        "database": url, "key_file": tmp_path / "secrets.key", "heartbeat_seconds": 0.5,
        "session_timeout_seconds": 20.0, "advertised_address": f"127.0.0.1:{second},127.0.0.1:{first}",
    }  # fmt: skip
    async with (
        installation(tmp_path, port=first, **shared) as installed,
        another(Home(tmp_path / "second"), second, **shared) as stop,
    ):
        await installed.join("n1")
        await installed.join("g2", token=await installed.token(role=JOIN_ROLE_GATEWAY), role=JoinRole.GATEWAY)
        assert f"127.0.0.1:{second},127.0.0.1:{first}" in installed.homes["n1"].settings_file("agent").read_text()
        async with installed.agent("n1"), installed.second_gateway("g2") as link:
            await installed.online("n1")
            nodes = stub_of(link, "node", "node")
            assert len((await nodes.ListNodes(ListNodesRequest())).nodes) == 1
            stop.set()
            await eventually(lambda: is_gone(second), what="the second has ended")
            before = (await installed.nodes())["n1"].status.heartbeat_time.ToNanoseconds()
            await eventually(lambda: beats(installed, before), what="the agent is with the first")

            async def answered() -> bool:
                with contextlib.suppress(Unavailable):
                    actual_nodes = (await nodes.ListNodes(ListNodesRequest())).nodes
                    return [node.status.state for node in actual_nodes] == [ONLINE]
                return False

            await eventually(answered, what="the gateway calls the first")


async def is_gone(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return True
    writer.close()
    return False


async def beats(installed: Installation, since: int) -> bool:
    status = (await installed.nodes())["n1"].status
    return status.state == ONLINE and status.heartbeat_time.ToNanoseconds() > since + 2_000_000_000
