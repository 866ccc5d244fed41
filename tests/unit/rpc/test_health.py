"""Queries of a process's health over a real socket: once, and repeatedly over one connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc

from keelman.rpc.health import HealthClient, is_serving
from keelman.rpc.server import RpcService, serve
from keelman.runtime.processes.ports import free_ports
from support.proxy import Proxy, Tunnel

ECHO = RpcService(
    "test.Echo",
    lambda _, server: server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {}),)),
    None,
)


async def test_health_is_not_serving_until_ready(tmp_path: Path) -> None:
    socket = tmp_path / "s.sock"
    address = f"unix:{socket}"
    assert not await is_serving(address)
    async with serve(ECHO, socket=socket) as health:
        assert not await is_serving(address)
        await health.ready()
        assert await is_serving(address, timeout_seconds=60)
        assert await is_serving(address, timeout_seconds=60, service=ECHO.name)
        await health.unready()
        assert not await is_serving(address)
    assert not socket.exists()


async def test_a_connection_is_kept_while_it_is_answered_and_the_next_process_is_found() -> None:
    [port] = free_ports(1)
    connections: list[Tunnel] = []

    def counted(*values: Any) -> Tunnel:
        connections.append(Tunnel(*values))
        return connections[-1]

    async with Proxy("127.0.0.1", port, tunnel=counted) as proxy:
        client = HealthClient(proxy.address)
        async with serve(ECHO, port=port) as health:
            await health.ready()
            for _ in range(5):
                assert await client.is_serving(timeout_seconds=60)
            assert len(connections) == 1
        assert not await client.is_serving()
        async with serve(ECHO, port=port) as health:
            await health.ready()
            assert await client.is_serving(timeout_seconds=60), "at once: it does not wait for another try"
        await client.close()
