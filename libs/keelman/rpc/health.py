"""Checks whether processes serve, by gRPC's health protocol.

The protocol: https://github.com/grpc/grpc/blob/master/doc/health-checking.md
"""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from keelman.rpc.channels import DIRECT, Channel

OWN = ("grpc.use_local_subchannel_pool", 1)  # else it shares the back-off of another client whose connection failed


async def is_serving(address: str, *, timeout_seconds: float = 2.0, service: str = "") -> bool:
    """Checks a process once. Returns False if it cannot be reached in time."""
    client = HealthClient(address)
    try:
        return await client.is_serving(timeout_seconds=timeout_seconds, service=service)
    finally:
        await client.close()


async def serves(channel: Channel, *, timeout_seconds: float = 2.0, service: str = "") -> bool:
    """Checks once the server of a channel that raises grpc's own errors. Returns False if it does not answer in
    time."""
    try:
        return await _serves(channel, timeout_seconds, service)
    except grpc.aio.AioRpcError:
        return False


async def _serves(channel: Channel, timeout_seconds: float, service: str) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout_seconds)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


class HealthClient:
    """Checks one process repeatedly. The connection is kept as long as the process answers: a new one for each check
    costs both sides more than the check. Create it after a fork, never before; `close` it."""

    def __init__(self, address: str) -> None:
        """`address` is host:port or unix:path."""
        self._address = address
        self._channel: Channel | None = None

    async def is_serving(self, *, timeout_seconds: float = 2.0, service: str = "") -> bool:
        """Returns whether the process serves; False if it cannot be reached in time. One call at a time."""
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._address, options=[*DIRECT, OWN])
        try:
            return await _serves(self._channel, timeout_seconds, service)
        except grpc.aio.AioRpcError:
            await self.close()  # its next try to connect would wait
            return False

    async def close(self) -> None:
        """Ends the connection; the next check opens another."""
        if self._channel is not None:
            opened, self._channel = self._channel, None
            await opened.close()
